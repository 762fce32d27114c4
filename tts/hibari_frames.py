"""Spectral frames to samples, a window of frames at a time.

The embedded voice's network describes each 12.5 ms frame by a harmonic, a noise and a free-phase spectrum,
after which a pulse train at the voice's pitch is filtered, the three are added and one inverse short-time
Fourier transform gives the waveform. Only four frames overlap in any sample, so with the last three kept, the
samples of a window are those of the whole sentence.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hibari import dsp

from tts.voice import Samples

Spectrum = npt.NDArray[np.float32]
"""float32[bins, frames]."""

HOP: int = dsp.HOP
OVERLAP: int = dsp.N_FFT // dsp.HOP
CENTRE = OVERLAP // 2
"""Hops from the first frame's beginning to its centre, where the audio begins."""


class FrameDecoder:
    """The waveform of one segment, made from its frames in order."""

    def __init__(self, pitch: npt.NDArray[np.float32], noise: np.random.Generator) -> None:
        """`pitch` is the fundamental frequency of all frames, Hz, float32[frames]; 0 where unvoiced."""
        self._frames = len(pitch)
        self._noise = noise
        self._done = 0
        pulses = np.pad(dsp.pulses(pitch), dsp.N_FFT // 2, mode="reflect")
        self._source = np.lib.stride_tricks.sliding_window_view(pulses, dsp.N_FFT)[::HOP]
        self._overlapping = np.zeros((OVERLAP - 1, OVERLAP, HOP), np.float32)

    def decode(
        self, harmonic: Spectrum, warp: Spectrum, noise: Spectrum, free: Spectrum, phase: Spectrum
    ) -> Samples:
        """The samples that the next frames complete: their log magnitudes and phases, each [601, n]."""
        count = harmonic.shape[1]
        spectra = self._harmonics(harmonic, warp) + self._shaped_noise(noise)
        spectra += _turned(np.exp(np.minimum(free.T, 7.0)), phase.T)
        frames: npt.NDArray[np.float32] = dsp.irfft(spectra, dsp.N_FFT, 1)
        windowed = (frames * dsp.WIN).reshape(count, OVERLAP, HOP)
        last = self._done + count == self._frames
        samples = self._overlap_add(windowed, last=last)
        self._done += count
        return samples

    def _harmonics(self, magnitude: Spectrum, warp: Spectrum) -> npt.NDArray[np.complex64]:
        count = magnitude.shape[1]
        pulses = self._source[self._done : self._done + count] * dsp.WIN_SRC
        spectra: npt.NDArray[np.complex64] = dsp.rfft(pulses, 1)
        spectra *= _turned(np.exp(np.minimum(magnitude.T, 7.0)), np.float32(np.pi) * np.tanh(warp.T))
        return spectra

    def _shaped_noise(self, magnitude: Spectrum) -> npt.NDArray[np.complex64]:
        bins, count = magnitude.shape
        white = self._noise.standard_normal((count, 2 * bins), dtype=np.float32).view(np.complex64)
        white *= np.exp(np.minimum(magnitude.T, 7.0))
        return white

    def _overlap_add(self, windowed: npt.NDArray[np.float32], *, last: bool) -> Samples:
        """The hops that no later frame touches, normalised by the windows' summed squares."""
        frames = np.concatenate([self._overlapping, windowed])
        if last:
            frames = np.concatenate([frames, np.zeros((OVERLAP - 1, OVERLAP, HOP), np.float32)])
        self._overlapping = frames[1 - OVERLAP :]
        hops = len(frames) - OVERLAP + 1
        total = frames[OVERLAP - 1 :, 0].copy()
        for offset in range(1, OVERLAP):
            total += frames[OVERLAP - 1 - offset : OVERLAP - 1 - offset + hops, offset]
        first = self._done
        total /= self._window_sum(np.arange(first, first + hops))
        begin = max(0, CENTRE - first)
        end = min(hops, self._frames + CENTRE - first)
        return total[begin:end].reshape(-1)

    def _window_sum(self, hops: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Summed squared windows of the frames that touch each hop: constant inside, less at both ends."""
        squares = (dsp.WIN * dsp.WIN).reshape(OVERLAP, HOP)
        total = np.zeros((len(hops), HOP), np.float32)
        for offset in range(OVERLAP):
            frame = hops - offset
            total += ((frame >= 0) & (frame < self._frames))[:, None] * squares[offset]
        return np.maximum(total, 1e-11)


def _turned(magnitude: npt.NDArray[np.float32], angle: npt.NDArray[np.float32]) -> npt.NDArray[np.complex64]:
    """Complex numbers of this magnitude and angle (radians)."""
    out = np.empty(magnitude.shape, np.complex64)
    np.multiply(np.cos(angle), magnitude, out=out.real)
    np.multiply(np.sin(angle), magnitude, out=out.imag)
    return out
