"""Benchmarks: one a stage and one for whole calls, each against what a user would else pick, in one run."""
