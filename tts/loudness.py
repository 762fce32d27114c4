"""A constant loudness: one gain a voice, whatever the sentence, and a soft limit instead of clipping.

Normalising each sentence by its own peak needs the whole sentence before the first sample and makes
neighbouring sentences unequally loud.
"""

from __future__ import annotations

import numpy as np

from tts.voice import Samples

LEVEL = 0.15
"""Root mean square of the louder parts of speech to which every voice is brought."""
KNEE = 0.75
"""Amplitude up to which the limiter changes nothing."""


def amplify(samples: Samples, gain: float) -> Samples:
    """`samples` times `gain`; what exceeds the knee bends smoothly towards 1. Not finite becomes silence."""
    louder: Samples = np.nan_to_num(samples * np.float32(gain), nan=0.0, posinf=0.0, neginf=0.0)
    over = np.abs(louder) > KNEE
    if over.any():
        excess = (np.abs(louder[over]) - KNEE) / (1 - KNEE)
        louder[over] = np.sign(louder[over]) * (KNEE + (1 - KNEE) * np.tanh(excess))
    return louder


def gain_for(speech: Samples) -> float:
    """The gain that brings a voice to the common loudness, from some of its speech."""
    loud = speech[np.abs(speech) > 0.1 * np.abs(speech).max(initial=0.0)]
    level = float(np.sqrt(np.mean(np.square(loud, dtype=np.float64)))) if loud.size else LEVEL
    return float(np.clip(LEVEL / level, 0.25, 4.0))
