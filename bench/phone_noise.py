"""What is no speech and must not stop the agent: sounds on a telephone line, and how often they do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from asr.vad import SileroVad
from bench.phone_speech import over_the_telephone
from fixtures.noises import SOUNDS, Random
from fixtures.speech import silence
from pipeline.audio import Audio


def false_onsets(*, quick: bool) -> dict[str, float]:
    """The share of sounds of each kind, a second of silence before it, in which speech begins."""
    vad = SileroVad()
    times = 5 if quick else 25
    return {f"taken_for_speech_{kind}": _share(vad, make, times) for kind, make in SOUNDS.items()}


def _share(vad: SileroVad, make: Callable[[Random], Audio], times: int) -> float:
    random = np.random.default_rng(1)
    calls = (np.concatenate([silence(1.0), make(random), silence(1.0)]) for _ in range(times))
    found = [_begins(vad, over_the_telephone(audio)) for audio in calls]
    return round(sum(found) / times, 3)


def _begins(vad: SileroVad, audio: Audio) -> bool:
    return any(frame.onset is not None for frame in vad.open().push(audio))
