"""Eight kilohertz to sixteen with a delay of two milliseconds.

A general resampler's stream holds 30 ms of 8 kHz audio back (see `pipeline.audio.StreamResampler`): a caller
would be heard, answered and let in that much later. Doubling a rate needs but one short filter.
"""

from __future__ import annotations

import numpy as np

from pipeline.audio import Audio

AHEAD = 16
"""Samples of the future that a sample between two others is made from: 2 ms of 8 kHz."""

_KAISER_BETA = 7.0
"""Images are 70 dB down from 4.5 kHz on; the telephone's band, up to 3.4 kHz, passes unchanged."""


def _between() -> Audio:
    """The sinc half way between two samples, windowed (Kaiser) to AHEAD samples on each side."""
    at = np.arange(-AHEAD, AHEAD) + 0.5
    window = np.i0(_KAISER_BETA * np.sqrt(1 - (at / AHEAD) ** 2)) / np.i0(_KAISER_BETA)
    taps = np.sinc(at) * window
    return np.asarray(taps / taps.sum(), np.float32)


_TAPS = _between()


class Doubler:
    """One direction of one call: twice the samples, each of the old ones kept and one put after it."""

    def __init__(self) -> None:
        self._recent = np.zeros(2 * AHEAD - 1, np.float32)

    def push(self, samples: Audio) -> Audio:
        """Twice as many samples as were given, AHEAD old ones behind them."""
        if not samples.size:
            return samples
        known = np.concatenate([self._recent, samples])
        self._recent = known[known.size - (2 * AHEAD - 1) :]
        doubled = np.empty(2 * samples.size, np.float32)
        doubled[0::2] = known[AHEAD - 1 : AHEAD - 1 + samples.size]
        doubled[1::2] = np.convolve(known, _TAPS, "valid")
        return doubled
