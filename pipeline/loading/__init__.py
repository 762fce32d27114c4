"""From settings to loaded stages: what must be on this machine first, how it is loaded and trained."""
