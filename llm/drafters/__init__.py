"""Drafters: where guessed tokens come from."""
