"""Where a long measurement stands, on stderr."""

from __future__ import annotations

import sys
import time

_EVERY_SECONDS = 15.0


class Progress:
    """Tells now and then how much of `total` is done and about how long the rest will take."""

    def __init__(self, what: str, total: int, most_seconds: float = float("inf")) -> None:
        """`most_seconds`: the work stops by then, done or not."""
        self._what, self._total, self._most_seconds = what, total, most_seconds
        self._started = self._told = time.monotonic()
        self._done = 0

    def step(self, note: str = "") -> None:
        """One more is done."""
        self._done += 1
        now = time.monotonic()
        if now - self._told >= _EVERY_SECONDS:
            self._told = now
            print(f"  {self._what}: {self._done} of {self._total}, {self._left(now)}{note}", file=sys.stderr)

    @property
    def out_of_time(self) -> bool:
        return time.monotonic() - self._started >= self._most_seconds

    def _left(self, now: float) -> str:
        passed = now - self._started
        left = min(passed / self._done * (self._total - self._done), self._most_seconds - passed)
        return f"about {left / 60:.1f} minutes left"
