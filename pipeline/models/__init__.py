"""The models on this machine: which there are, how they are fetched, prepared, loaded and trained."""
