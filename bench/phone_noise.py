"""What is no speech and must not stop the agent: sounds on a telephone line, and how often they do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.signal import butter, sosfilt

from asr.vad import SileroVad
from bench.phone_speech import over_the_telephone
from pipeline.audio import Audio
from pipeline.hearing.audio_clock import RATE

Make = Callable[[np.random.Generator], np.ndarray]

_SCALE = (0, 2, 4, 5, 7, 9, 11, 12)


def false_onsets(*, quick: bool) -> dict[str, float]:
    """The share of sounds of each kind, a second of silence before it, in which speech begins."""
    vad = SileroVad()
    times = 5 if quick else 25
    return {f"taken_for_speech_{kind}": _share(vad, make, times) for kind, make in _SOUNDS.items()}


def _share(vad: SileroVad, make: Make, times: int) -> float:
    random = np.random.default_rng(1)
    quiet = np.zeros(RATE, np.float32)
    calls = (np.concatenate([quiet, make(random).astype(np.float32), quiet]) for _ in range(times))
    found = [_begins(vad, over_the_telephone(audio)) for audio in calls]
    return round(sum(found) / times, 3)


def _begins(vad: SileroVad, audio: Audio) -> bool:
    return any(frame.onset is not None for frame in vad.open().push(audio))


def _noise(random: np.random.Generator, seconds: float, low: float = 60, high: float = 7900) -> np.ndarray:
    band = butter(4, [low, high], "band", fs=RATE, output="sos")
    noise = np.asarray(sosfilt(band, random.standard_normal(round(seconds * RATE))))
    return np.asarray(noise / np.abs(noise).max())


def _click(random: np.random.Generator) -> np.ndarray:
    length = int(random.integers(20, 300))
    return _decay(length) * random.standard_normal(length) * random.uniform(0.1, 0.9)


def _decay(length: int) -> np.ndarray:
    return np.exp(-np.arange(length) * 4 / length)


def _breath(random: np.random.Generator) -> np.ndarray:
    noise = _noise(random, random.uniform(0.25, 0.7), random.uniform(200, 600), random.uniform(2000, 3800))
    return noise * np.hanning(noise.size) * random.uniform(0.02, 0.3)


def _burst(random: np.random.Generator) -> np.ndarray:
    return _noise(random, random.uniform(0.05, 0.5)) * random.uniform(0.05, 0.8)


def _keys(random: np.random.Generator) -> np.ndarray:
    typed = np.zeros(2 * RATE)
    for at in np.cumsum(random.uniform(0.07, 0.2, 10)):
        start = round(at * RATE)
        typed[start : start + 300] += _noise(random, 300 / RATE, 800, 4000) * _decay(300) * 0.3
    return typed


def _fan(random: np.random.Generator) -> np.ndarray:
    return _noise(random, 3.0, 60, 1500) * random.uniform(0.02, 0.2)


def _cough(random: np.random.Generator) -> np.ndarray:
    """A burst in a mouth's resonances, without the voice that some coughs end in."""
    seconds = random.uniform(0.2, 0.35)
    bands = ((400, 900, 1.0), (1200, 1800, 0.7), (2300, 3200, 0.4))
    burst = sum(weight * _noise(random, seconds, low, high) for low, high, weight in bands)
    return burst * _decay(round(seconds * RATE)) * random.uniform(0.05, 0.4)


def _hold_music(random: np.random.Generator) -> np.ndarray:
    """Chords of plucked strings."""
    music = np.zeros(6 * RATE)
    for start in _beats(random, music.size - RATE):
        for step in random.choice(_SCALE, random.integers(1, 4)):
            hertz = 220 * 2 ** (step / 12)
            time = np.arange(min(RATE, music.size - start)) / RATE
            string = sum(np.sin(2 * np.pi * hertz * n * time) / n for n in range(1, 6))
            music[start : start + time.size] += 0.08 * string * np.exp(-3 * time)
    return music


def _beats(random: np.random.Generator, end: int) -> Iterator[int]:
    start = 0
    while start < end:
        yield start
        start += round(float(random.choice((0.25, 0.5, 1.0))) * RATE)


_SOUNDS: dict[str, Make] = {
    "clicks": _click,
    "breath": _breath,
    "bursts": _burst,
    "keys": _keys,
    "fans": _fan,
    "coughs": _cough,
    "hold_music": _hold_music,
}
