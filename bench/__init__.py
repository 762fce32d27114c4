"""Benchmarks: one a stage and one for whole calls. Each compares with what a user would pick instead, in the same run."""
