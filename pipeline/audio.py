"""Sample formats and rates, converted once at the edge of the service, with state kept for each direction.

Inside the service audio is float32 mono in [-1, 1]; wires carry 16-bit integers, at rates of their own.
"""

from __future__ import annotations

import numpy as np
import soxr
from numpy.typing import NDArray

from asr.audio import SAMPLE_RATE
from asr.audio import Audio as Audio

CALLER_RATE = SAMPLE_RATE
"""Hz; what the caller says is listened to at this rate, whatever the wire's."""

_EMPTY: Audio = np.zeros(0, dtype=np.float32)


class StreamResampler:
    """Converts one direction of one call from `rate_in` to `rate_out` Hz, whatever the sizes of its pieces.

    soxr's variable-rate engine, held at a fixed ratio: its block engine holds back up to 37 ms of 24 kHz
    audio (115 ms of 8 kHz), this one a constant 10 ms (30 ms), with its error still below -100 dB. At equal
    rates samples pass through untouched.
    """

    def __init__(self, rate_in: int, rate_out: int) -> None:
        """Raises ValueError for a rate that is not positive."""
        if rate_in <= 0 or rate_out <= 0:
            raise ValueError(f"sample rates must be positive, got {rate_in} and {rate_out} Hz")
        self.rate_in = rate_in
        self.rate_out = rate_out
        self._stream = None if rate_in == rate_out else self._open()

    def push(self, samples: Audio) -> Audio:
        """The samples at `rate_out` that are ready; may be empty, the rest comes with later pieces."""
        if self._stream is None or not len(samples):
            return samples
        return np.asarray(self._stream.resample_chunk(np.ascontiguousarray(samples)), dtype=np.float32)

    def flush(self) -> Audio:
        """What is still held back; the next `push` begins a new stream."""
        if self._stream is None:
            return _EMPTY
        rest = np.asarray(self._stream.resample_chunk(_EMPTY, last=True), dtype=np.float32)
        self._stream = self._open()
        return rest

    def _open(self) -> soxr.ResampleStream:
        return soxr.ResampleStream(self.rate_in, self.rate_out, 1, dtype="float32", vr=True)


def pcm16_to_float(pcm: bytes) -> Audio:
    """Little-endian 16-bit mono PCM as float32 in [-1, 1). Raises ValueError when a sample is cut in half."""
    if len(pcm) % 2:
        raise ValueError(f"{len(pcm)} bytes are not a whole number of 16-bit samples")
    return np.frombuffer(pcm, dtype="<i2").astype(np.float32) / np.float32(32768)


def float_to_pcm16(samples: Audio) -> bytes:
    """Float32 in [-1, 1] as little-endian 16-bit mono PCM, rounded; louder samples are clipped."""
    scaled = np.rint(samples * np.float32(32768))
    return bytes(np.clip(scaled, -32768, 32767).astype("<i2"))


def mix_to_mono(samples: NDArray[np.float32]) -> Audio:
    """Frames x channels (or already mono) averaged to one channel."""
    if samples.ndim == 1:
        return samples
    return np.asarray(samples.mean(axis=1), dtype=np.float32)
