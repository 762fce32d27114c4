"""Whisper's log-mel features, in pieces: for a window that grows, and for networks that share them.

Radford et al. (2212.04356): 80 (or 128) mel bands of a 25 ms Hann window every 10 ms, log10, floored at 8
decades under the loudest, scaled to about [-1, 1]. The filters are faster-whisper's.
"""

from __future__ import annotations

import numpy as np
from faster_whisper.feature_extractor import FeatureExtractor
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from asr.audio import SAMPLE_RATE, Audio

WINDOW = 400
HOP = 160
SILENCE = -10.0  # log10 of the power floor: what a frame of zeros gives

# OpenBLAS splits a larger product over its own threads, and waiting for one of those on a busy core costs a
# whole time slice (16 ms measured, for 1 ms of work). Products of so few rows stay on the caller's thread.
_ROWS = 16

Features = NDArray[np.float32]


class LogMel:
    """The transform from audio to log power per mel band, without the normalisation (see `normalise`)."""

    def __init__(self, bands: int = 80) -> None:
        self.bands = bands
        filters = FeatureExtractor.get_mel_filters(SAMPLE_RATE, WINDOW, n_mels=bands)
        self._filters = np.ascontiguousarray(filters.T.astype(np.float32))
        self._hann = np.hanning(WINDOW + 1)[:-1].astype(np.float32)

    def frames(self, audio: Audio) -> Features:
        """float32[n] to float32[n_frames, bands]: one row for each whole window of 400 samples, every 160."""
        count = 1 + (len(audio) - WINDOW) // HOP
        if count < 1:
            return np.empty((0, self.bands), np.float32)
        windows = sliding_window_view(audio, WINDOW)[::HOP]
        spectrum = np.fft.rfft(windows * self._hann, axis=-1)
        power = np.square(spectrum.real) + np.square(spectrum.imag)
        padded = np.pad(power, ((0, -count % _ROWS), (0, 0))).reshape(-1, _ROWS, power.shape[1])
        mel = np.matmul(padded, self._filters).reshape(-1, self.bands)[:count]
        log: Features = np.log10(np.maximum(mel, 1e-10))
        return log

    def centred(self, audio: Audio) -> Features:
        """Like `frames`, with a window centred on every 160th sample: the audio is mirrored at both ends."""
        mirrored = np.pad(audio, WINDOW // 2, mode="reflect")
        return self.frames(mirrored)[: len(audio) // HOP]


def normalise(log_power: Features) -> Features:
    """Log power [n_frames, bands] as the networks want it: contiguous [1, bands, n_frames]."""
    floored = np.maximum(log_power, log_power.max() - 8.0)
    return np.ascontiguousarray(((floored + 4.0) / 4.0).T[None], dtype=np.float32)
