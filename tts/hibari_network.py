"""The embedded voice's network: its body once a sentence, its last layer and the waveform in windows.

The network quantises the activations of a whole sentence by their common range, so up to its last layer it
cannot run in windows and give the same result. Behind that point everything can: the last layer multiplies
integers frame by frame, and only four frames overlap in the waveform. The windows equal the whole sentence's
audio to the bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tts.hibari_frames import HOP, FrameDecoder
from tts.onnx_graph import FLOAT, UINT8, Graph, Tensor
from tts.onnx_session import session
from tts.segmented import Speech
from tts.voice import Samples

SAMPLE_RATE = 24_000
FIRST_WINDOW, LARGEST_WINDOW = 8, 128
"""Frames of 12.5 ms: the first audible window is short for the caller's sake, later ones double."""
FRAMES_PER_DURATION = 2
"""The network counts durations in steps of 25 ms."""
SEED = 0
"""Of the noise in breathy sounds: the same text always gives the same audio."""

LAST_LAYER = "/dec_norm/LayerNormalization_output_0_"
QUANTISED, SCALE, ZERO_POINT = (LAST_LAYER + part for part in ("quantized", "scale", "zero_point"))
PITCH, DURATIONS = "f0", "/Clip_output_0"
SPECTRA = ("lh", "theta", "ln", "lr", "phi")


@dataclass(frozen=True, slots=True)
class SpectralFrames:
    """A segment as far as it must be computed whole."""

    pitch: npt.NDArray[np.float32]
    durations: npt.NDArray[np.float32]  # one a phoneme, in steps of FRAMES_PER_DURATION frames
    frames: npt.NDArray[np.uint8]  # [1, frames, channels]
    scale: npt.NDArray[np.float32]
    zero_point: npt.NDArray[np.uint8]


class HibariNetwork:
    """One voice's network; safe across threads."""

    def __init__(self, model: bytes, *, threads: int = 1) -> None:
        graph = Graph(model)
        frames = {QUANTISED: Tensor(UINT8, 3), SCALE: Tensor(FLOAT, 0), ZERO_POINT: Tensor(UINT8, 0)}
        self._body = session(graph.part({}, [PITCH, DURATIONS, *frames]), threads)
        self._last_layer = session(graph.part(frames, SPECTRA), threads)

    def say(self, ids: Sequence[int]) -> Speech:
        """The segment's audio, float32 at 24 kHz, the pad's silence in the first window."""
        encoded = self.encode(ids)
        seconds = encoded.durations.astype(np.float64) * (FRAMES_PER_DURATION * HOP / SAMPLE_RATE)
        return Speech(seconds, self.stream(encoded, _windows(encoded)))

    def encode(self, ids: Sequence[int]) -> SpectralFrames:
        inputs = {"ids": np.asarray([ids], np.int64), "speed": np.ones(1, np.float32)}
        pitch, durations, *rest = self._body.run([PITCH, DURATIONS, QUANTISED, SCALE, ZERO_POINT], inputs)
        return SpectralFrames(pitch[0], durations, *rest)

    def stream(self, encoded: SpectralFrames, windows: Iterable[tuple[int, int]]) -> Iterator[Samples]:
        """The audio of consecutive half-open ranges of frames."""
        decoder = FrameDecoder(encoded.pitch, np.random.default_rng(SEED))
        for begin, end in windows:
            yield decoder.decode(*(spectrum[0] for spectrum in self.spectra(encoded, begin, end)))

    def spectra(self, encoded: SpectralFrames, begin: int, end: int) -> list[npt.NDArray[np.float32]]:
        """What `FrameDecoder.decode` takes, for these frames, each float32[1, 601, frames]."""
        frames = {
            QUANTISED: encoded.frames[:, begin:end],
            SCALE: encoded.scale,
            ZERO_POINT: encoded.zero_point,
        }
        spectra: list[npt.NDArray[np.float32]] = self._last_layer.run(SPECTRA, frames)
        return spectra

    def whole(self, encoded: SpectralFrames) -> Samples:
        """The segment's audio at once."""
        return next(self.stream(encoded, [(0, len(encoded.pitch))]))


def _windows(encoded: SpectralFrames) -> Iterator[tuple[int, int]]:
    """Half-open ranges of frames: the silent pad and a little sound first, then larger and larger ones."""
    total = len(encoded.pitch)
    begin, size = 0, FIRST_WINDOW
    end = int(encoded.durations[0]) * FRAMES_PER_DURATION + size
    while begin < total:
        if total - end < FIRST_WINDOW:
            end = total
        yield begin, end
        size = min(2 * size, LARGEST_WINDOW)
        begin, end = end, end + size
