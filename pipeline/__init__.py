"""One call's life: turn taking, drafts behind the commit gate, barge-in, the timeline and the latency log."""
