"""Where the milliseconds went: the timeline of a turn, its row in the latency log, its spans."""
