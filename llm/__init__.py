"""Answering: targets, drafters, exact verification, the cache kept across turns, sentences."""
