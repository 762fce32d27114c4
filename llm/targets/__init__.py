"""Targets: the models that have the last word on every token."""
