"""Maps positions in the caller's audio (samples) to the loop's clock (seconds)."""

from __future__ import annotations

from pipeline.audio import CALLER_RATE

_GAP = 0.5
"""Seconds that audio may arrive late before the silence in between counts as not recorded."""

_DRIFT = 100e-6
"""Sender clocks are this exact; lets the anchor follow a slow sender without following jitter."""


class AudioClock:
    """When a sample was spoken, judged by the least delayed packet so far.

    A packet can only arrive late, never early, so the smallest (arrival - position) seen is the best anchor.
    A sender that stops sending (a muted page) leaves a gap: the anchor then jumps; a burst after a stall
    pulls it back.
    """

    def __init__(self) -> None:
        self.samples = 0
        self._anchor: float | None = None
        self._last_arrival = 0.0

    def arrived(self, samples: int, now: float) -> None:
        """`samples` more were received at loop time `now`."""
        self.samples += samples
        anchor = now - self.samples / CALLER_RATE
        if self._anchor is None or anchor - self._anchor > _GAP:
            self._anchor = anchor
        else:
            drifted = self._anchor + _DRIFT * (now - self._last_arrival)
            self._anchor = min(drifted, anchor)
        self._last_arrival = now

    def time_of(self, sample: int) -> float:
        """Loop time at which the sample at this position was spoken. Before any audio: 0-based positions at
        time 0."""
        return (self._anchor or 0.0) + sample / CALLER_RATE
