"""The model files on this machine: which there are, by their hashes, and how they are fetched."""
