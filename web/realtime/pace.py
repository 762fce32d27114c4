"""Keeps a client that sends its audio faster than it was spoken to the pace of speech."""

from __future__ import annotations


class RealTimePace:
    """A leaky bucket of audio seconds that drains as time passes.

    A call is timed on the caller's audio, so audio may not run ahead of the clock: a recording sent in one go
    is heard as slowly as it was spoken. `lead_seconds` may run ahead, so that jitter passes unhindered; what
    a stalled network delivers late, up to `stall_seconds`, may come at once.
    """

    def __init__(self, lead_seconds: float = 0.5, stall_seconds: float = 5.0) -> None:
        self._lead = lead_seconds
        self._stall = stall_seconds
        self._level = 0.0
        self._at: float | None = None

    def wait_before(self, audio_seconds: float, now: float) -> float:
        """Seconds to wait before this much more audio is passed on; assumes that the caller does wait."""
        if self._at is not None:
            self._level = max(-self._stall, self._level - (now - self._at))
        self._level += audio_seconds
        self._at = now
        return max(0.0, self._level - self._lead)
