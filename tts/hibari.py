"""The embedded voice: `hibari-tts`, in English, on one CPU core, streamed inside the sentence.

Its network quantises the activations of a whole sentence by their common range, so up to its last layer it
cannot run in windows and give the same result. Behind that point everything can: the last layer multiplies
integers frame by frame, and the waveform overlaps by four frames. So the body runs once, and the last layer
and the waveform follow window by window, equal to the whole sentence's to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from hibari.voices import VOICES, voice_path

from tts.hibari_frames import HOP, FrameDecoder
from tts.hibari_phonemes import Phonemes
from tts.loudness import amplify
from tts.onnx_graph import FLOAT, UINT8, Graph, Tensor
from tts.onnx_session import session
from tts.pauses import gap_after
from tts.segment import Segment, log_unsaid
from tts.silence import Piece, join
from tts.speakable import Spoken, speakable
from tts.voice import Cancelled, VoiceChunk

SAMPLE_RATE = 24_000
GAIN = 2.0
"""Brings the voice's speech to about -21 dBFS RMS."""
FIRST_WINDOW, LARGEST_WINDOW = 8, 128
"""Frames of 12.5 ms: the first audible window is short for the caller's sake, later ones double."""
FRAMES_PER_DURATION = 2
"""The network counts durations in steps of 25 ms."""
LONGEST_LAST_PHONEME = 0.15
"""Seconds; the network gives the pause after a word to the word's last phoneme."""

LAST_LAYER = "/dec_norm/LayerNormalization_output_0_"
QUANTISED, SCALE, ZERO_POINT = (LAST_LAYER + part for part in ("quantized", "scale", "zero_point"))
PITCH, DURATIONS = "f0", "/Clip_output_0"
SPECTRA = ("lh", "theta", "ln", "lr", "phi")
SEED = 0
"""Of the noise in breathy sounds: the same text always gives the same audio."""


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A segment as far as it must be computed whole."""

    pitch: npt.NDArray[np.float32]
    durations: npt.NDArray[np.float32]  # one a phoneme, in steps of FRAMES_PER_DURATION frames
    frames: npt.NDArray[np.uint8]
    scale: npt.NDArray[np.float32]
    zero_point: npt.NDArray[np.uint8]


class HibariVoice:
    """An English voice of `hibari-tts`; "heart" (American) is inside the package.

    `hibari-tts` itself fetches the others from the publisher, once. Raises ValueError for an unknown one.
    """

    sample_rate = SAMPLE_RATE

    def __init__(
        self, voice: str = "heart", *, threads: int = 1, pronunciations: Mapping[str, str] | None = None
    ) -> None:
        if voice not in VOICES:
            raise ValueError(f"hibari has no voice {voice!r}; it has {', '.join(VOICES)}")
        self.name = "hibari" if voice == "heart" else f"hibari:{voice}"
        self._pronunciations = pronunciations
        graph = Graph(Path(voice_path(voice)).read_bytes())
        frames = {QUANTISED: Tensor(UINT8, 3), SCALE: Tensor(FLOAT, 0), ZERO_POINT: Tensor(UINT8, 0)}
        self._body = session(graph.part({}, [PITCH, DURATIONS, *frames]), threads)
        self._last_layer = session(graph.part(frames, SPECTRA), threads)
        self._phonemes = Phonemes(british=VOICES[voice]["british"])

    def warm_up(self) -> None:
        for _ in self.synthesise("Ready when you are.", cancelled=lambda: False):
            pass

    def synthesise(self, text: str, *, cancelled: Cancelled) -> Iterator[VoiceChunk]:
        """See `Voice.synthesise`. English only: words in other scripts are left out."""
        spoken = speakable(text, pronunciations=self._pronunciations)
        segments = self._phonemes.segments(spoken.text)
        log_unsaid(self.name, spoken, segments)
        return join(self._pieces(text, spoken, segments), SAMPLE_RATE, cancelled)

    def _pieces(self, text: str, spoken: Spoken, segments: Sequence[Segment]) -> Iterator[Piece]:
        for index, segment in enumerate(segments):
            gap = gap_after(segment.ending if index + 1 < len(segments) else text)
            yield Piece(self._segment(segment, spoken), gap)

    def _segment(self, segment: Segment, spoken: Spoken) -> Iterator[VoiceChunk]:
        encoded = self._encode(segment)
        step = FRAMES_PER_DURATION * HOP / SAMPLE_RATE
        words = segment.timings(encoded.durations * step, spoken, longest_last=LONGEST_LAST_PHONEME)
        decoder = FrameDecoder(encoded.pitch, np.random.default_rng(SEED))
        made = 0
        for begin, end in _windows(encoded):
            frames = {
                QUANTISED: encoded.frames[:, begin:end],
                SCALE: encoded.scale,
                ZERO_POINT: encoded.zero_point,
            }
            spectra = self._last_layer.run(SPECTRA, frames)
            samples = amplify(decoder.decode(*(spectrum[0] for spectrum in spectra)), GAIN)
            made += len(samples)
            started = sum(word.start * SAMPLE_RATE < made for word in words)
            yield VoiceChunk(samples, tuple(words[:started]))
            words = words[started:]

    def _encode(self, segment: Segment) -> _Encoded:
        inputs = {"ids": np.asarray([segment.ids], np.int64), "speed": np.ones(1, np.float32)}
        pitch, durations, *rest = self._body.run([PITCH, DURATIONS, QUANTISED, SCALE, ZERO_POINT], inputs)
        return _Encoded(pitch[0], durations, *rest)


def _windows(encoded: _Encoded) -> Iterator[tuple[int, int]]:
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
