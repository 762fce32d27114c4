"""What every stage of the room does to audio before using it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

SAMPLE_RATE = 16_000

Audio = NDArray[np.float32]


def as_audio(samples: ArrayLike) -> Audio:
    """`samples` as float32[n], mono, within [-1, 1].

    Values that are not numbers become silence and values beyond full scale are clipped, so a broken frame of
    a microphone or a decoder costs its own milliseconds and nothing else. An empty array is allowed.

    Raises:
        TypeError: the samples are not floating point (integers say nothing about their full scale).
        ValueError: the array has more than one dimension.
    """
    audio = np.asarray(samples)
    if not np.issubdtype(audio.dtype, np.floating):
        raise TypeError(
            f"audio must be float32 in [-1, 1], not {audio.dtype}: divide 16-bit samples by 32768 first"
        )
    if audio.ndim != 1:
        raise ValueError(f"audio must be mono, one dimension, not an array of shape {audio.shape}")
    audio = np.nan_to_num(audio, nan=0.0, posinf=0.0, neginf=0.0)
    return np.asarray(np.clip(audio, -1.0, 1.0), dtype=np.float32)  # last: it does not hold all of float64
