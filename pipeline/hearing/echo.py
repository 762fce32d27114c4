"""Is what the microphone hears the agent's own voice, come back from a loudspeaker?

A caller without echo cancellation sends the agent's audio back: later, quieter, coloured by a room. It is
told from speech by the normalised cross-correlation of the last moment of the microphone with what was
played up to then. Measured with the voices of this project, at 6 to 20 dB of attenuation and 30 to 300 ms of
delay: echo alone gives 0.87 and more (0.5 to 0.95 in a reverberant room), a caller alone at most 0.35, a
caller as loud as the agent over its echo mostly under 0.45.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import soxr

from pipeline.audio import CALLER_RATE, Audio
from pipeline.hearing.microphone import Microphone

WINDOW_SECONDS = 0.25
"""How much of the microphone's audio is compared."""

_LONGEST_DELAY = 0.6
_EARLIEST = 0.1
"""Seconds by which the echo may come after, and for errors of the clocks before, its audio by our clock."""

_ECHO = 0.5
"""Correlation from which on it is echo. A caller must be about as loud as the echo to be under it."""

_COMPARED_RATE = 8_000
"""Hz; the telephone's band is enough, and keeps a comparison at about a millisecond."""

_AGAIN_SAMPLES = 3 * 512
"""Audio after which an echo that goes on is compared again: the caller may have begun to speak over it."""

Played = Callable[[float, float, float], tuple[Audio, int] | None]
"""(loop time, seconds before it, seconds after it) to the audio of that time and its rate in Hz."""


def likeness(heard: Audio, played: Audio) -> float:
    """The greatest absolute normalised cross-correlation of `heard` with any stretch of `played`, which is at
    the same rate and not shorter. 0 where either is silent."""
    heard = heard - heard.mean()
    stretch = np.concatenate([[0.0], np.cumsum(np.square(played, dtype=np.float64))])
    energies = stretch[heard.size :] - stretch[: -heard.size]
    energy, loudest = float(np.dot(heard, heard)), float(energies.max())
    if min(energy, loudest) < 1e-6:
        return 0.0
    size = 1 << (played.size + heard.size - 1).bit_length()
    spectrum = np.fft.rfft(played, size) * np.conj(np.fft.rfft(heard, size))
    products = np.abs(np.fft.irfft(spectrum, size)[: energies.size])
    return float(np.max(products / np.sqrt(np.maximum(energies, 1e-3 * loudest) * energy)))


class EchoGuard:
    """Says of one call's voice activity whether it is the agent's echo, again and again while it lasts."""

    def __init__(self, microphone: Microphone, played: Played) -> None:
        self._microphone = microphone
        self._played = played
        self._compared_at: int | None = None

    @property
    def sounding(self) -> bool:
        """Whether an echo was heard that has not ended."""
        return self._compared_at is not None

    def is_echo(self) -> bool:
        """Whether the last moment of the microphone is what the agent said; remembers to look again."""
        echo = self._likeness() >= _ECHO
        self._compared_at = self._microphone.end if echo else None
        return echo

    def due(self, here: int) -> bool:
        """Whether an echo still sounds at position `here`, and has for so long that it is to be judged
        anew."""
        return self._compared_at is not None and here - self._compared_at >= _AGAIN_SAMPLES

    def over(self) -> None:
        """The voice activity has ended."""
        self._compared_at = None

    def _likeness(self) -> float:
        microphone = self._microphone
        now = microphone.time_of(microphone.end)
        heard = microphone.since(microphone.end - round(WINDOW_SECONDS * CALLER_RATE))
        around = self._played(now, WINDOW_SECONDS + _LONGEST_DELAY, _EARLIEST)
        if around is None or not heard.size:
            return 0.0
        return likeness(_compared(heard, CALLER_RATE), _compared(*around))


def _compared(audio: Audio, rate: int) -> Audio:
    return np.asarray(soxr.resample(audio, rate, _COMPARED_RATE, quality="LQ"), np.float32)
