"""Sample formats and rates, converted once at the edge of the service, with state kept for each direction.

Inside the service audio is float32 mono in [-1, 1]; wires carry 16-bit integers, at rates of their own.
"""

from __future__ import annotations

from typing import Any

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
    """Float32 in [-1, 1] as little-endian 16-bit mono PCM, rounded; louder samples are clipped, and what is
    not a number is silence."""
    bounded = np.clip(np.nan_to_num(samples, nan=0.0), -1.0, 1.0)
    return bytes(np.minimum(np.rint(bounded * np.float32(32768)), 32767).astype("<i2"))


_SPEECH_RATE = 8_000
"""Channels are compared by what a telephone would carry of them."""

_AGREEMENT = 0.9
_WITHIN = 0.25  # of the loudest one's energy: 6 dB


def mix_to_mono(samples: NDArray[np.floating[Any]], rate: int) -> Audio:
    """Frames x channels (or already mono), within [-1, 1], as float32 mono: the loudest channel, averaged
    with those that agree with it.

    An average of all would silence channels in opposite phase, take frequencies out of one that comes later,
    and put two people who have a channel each into one voice: of those only the louder is kept. Loud is what
    has the most energy between hum and 4 kHz. Channels agree whose samples correlate at the same instant and
    differ by 6 dB at most.
    """
    if samples.ndim == 1:
        return samples.astype(np.float32)
    if samples.shape[1] == 1:
        return samples[:, 0].astype(np.float32)
    heard = np.diff(soxr.resample(samples.astype(np.float64), rate, _SPEECH_RATE), axis=0)
    energy = np.square(heard).sum(axis=0)
    loudest = int(energy.argmax())
    shared = heard.T @ heard[:, loudest]
    agree = (shared >= _AGREEMENT * np.sqrt(energy * energy[loudest])) & (energy >= _WITHIN * energy[loudest])
    return np.asarray(samples[:, agree].mean(axis=1), dtype=np.float32)


_HOT = 8.0
"""Up to here samples beyond full scale are a mix that was too loud (18 dB); beyond it they are integers."""

_FAULTS = 1e-4
"""Of the samples that are not silent, so few can be faults; of speech in integers more are loud."""

_FULL_SCALES = (2.0**15, 2.0**23, 2.0**31)


def in_full_scale(samples: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Samples in whatever scale they were written, within [-1, 1], without their constant offset. Frames, or
    frames x channels.

    Values that are not numbers become silence, and so do single ones far beyond all others: both are faults
    of what wrote the file, and would make the rest silent. What goes beyond full scale is brought back to it;
    samples that are integers' in size are taken for 16, 24 or 32 bits.

    Raises:
        ValueError: no value is a number, or the scale cannot be told.
    """
    numbers = np.isfinite(samples)
    if not numbers.any():
        raise ValueError("none of its samples is a number")
    audio = np.where(numbers, samples, 0.0).astype(np.float64)
    beyond = np.abs(audio) > _HOT
    if np.count_nonzero(beyond) <= _FAULTS * np.count_nonzero(audio):
        audio[beyond] = 0.0
    peak = float(np.abs(audio).max())
    if peak > _HOT:
        fitting = [scale for scale in _FULL_SCALES if peak <= _HOT * scale]
        if not fitting:
            raise ValueError(f"its samples go up to {peak:.3g}, and no full scale is known for that")
        peak = max(peak, fitting[0])
    audio /= max(peak, 1.0)
    centred = audio - audio.mean(axis=0)
    return np.asarray(centred / max(float(np.abs(centred).max()), 1.0))
