"""What drafting a token costs, measured when a drafter is loaded."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Seconds, from any start."""


def quickest(run: Callable[[], object], clock: Clock = time.perf_counter, runs: int = 5) -> float:
    """Seconds of the quickest of several runs; never 0, which would mean that drafting is free."""
    seconds = float("inf")
    for _ in range(runs):
        before = clock()
        run()
        seconds = min(seconds, clock() - before)
    return max(seconds, 1e-9)
