"""Piper voices from their files, streamed inside the sentence. Phonemes come from the program espeak-ng."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tts.loudness import amplify, gain_for
from tts.pauses import gap_after
from tts.piper_network import PiperError, PiperNetwork
from tts.piper_phonemes import PiperPhonemes
from tts.segment import Segment, log_unsaid
from tts.silence import Piece, join
from tts.speakable import Spoken, speakable
from tts.voice import Cancelled, VoiceChunk

CALIBRATION = "1 2 3 4 5 6 7 8."
"""Said once, unheard, to learn the voice's own loudness; digits are read in any language."""


class PiperVoice:
    """A Piper voice with one speaker and espeak-ng phonemes, by its `.onnx` file or the folder that holds it.

    The voice's `.onnx.json` lies beside the model. Raises PiperError, CutError or EspeakError.
    """

    def __init__(
        self, path: Path, *, threads: int = 1, pronunciations: Mapping[str, str] | None = None
    ) -> None:
        self._pronunciations = pronunciations
        model = _model_file(path)
        config = _read_config(model)
        self.name = f"piper:{model.stem}"
        try:
            self.sample_rate = int(config["audio"]["sample_rate"])
            inference = config["inference"]
            language = config["espeak"]["voice"]
            self._phonemes = PiperPhonemes(language, config["phoneme_id_map"])
            scales = [inference["noise_scale"], inference["length_scale"], inference["noise_w"]]
        except KeyError as error:
            raise PiperError(f"{model}.json is no Piper voice's configuration: it lacks {error}") from error
        self._language = language.split("-")[0]
        try:
            speakable("", language=self._language)
        except ValueError as error:
            raise PiperError(
                f"{self.name} speaks a language whose text cannot be read aloud: {error}"
            ) from error
        quality = config["audio"].get("quality", "")
        self._network = PiperNetwork(model.read_bytes(), quality=quality, scales=scales, threads=threads)
        self._gain = self._calibrate()

    def warm_up(self) -> None:
        for _ in self.synthesise(CALIBRATION, cancelled=lambda: False):
            pass

    def synthesise(self, text: str, *, cancelled: Cancelled) -> Iterator[VoiceChunk]:
        """See `Voice.synthesise`."""
        spoken = speakable(text, pronunciations=self._pronunciations, language=self._language)
        segments = self._phonemes.segments(spoken.text)
        log_unsaid(self.name, spoken, segments)
        return join(self._pieces(text, spoken, segments), self.sample_rate, cancelled)

    def _pieces(self, text: str, spoken: Spoken, segments: Sequence[Segment]) -> Iterator[Piece]:
        for index, segment in enumerate(segments):
            gap = gap_after(segment.ending if index + 1 < len(segments) else text)
            yield Piece(self._segment(segment, spoken), gap)

    def _segment(self, segment: Segment, spoken: Spoken) -> Iterator[VoiceChunk]:
        encoded = self._network.encode(segment.ids)
        words = segment.timings(encoded.durations * (self._network.hop / self.sample_rate), spoken)
        made = 0
        for samples in self._network.stream(encoded):
            made += len(samples)
            started = sum(word.start * self.sample_rate < made for word in words)
            yield VoiceChunk(amplify(samples, self._gain), tuple(words[:started]))
            words = words[started:]

    def _calibrate(self) -> float:
        segments = self._phonemes.segments(CALIBRATION)
        return gain_for(np.concatenate([self._network.whole(self._network.encode(s.ids)) for s in segments]))


def _model_file(path: Path) -> Path:
    models = sorted(path.glob("*.onnx")) if path.is_dir() else [path]
    if len(models) != 1 or not models[0].is_file():
        raise PiperError(f"{path} is no Piper voice: give its .onnx file, or a folder with one .onnx file")
    return models[0]


def _read_config(model: Path) -> dict[str, Any]:
    path = Path(f"{model}.json")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PiperError(f"cannot read {path}, the voice's configuration: {error}") from error
    if not isinstance(config, dict):
        raise PiperError(f"{path} is no Piper voice's configuration")
    if config.get("num_speakers", 1) > 1:
        raise PiperError(f"{model.name} has several speakers; only voices with one are supported")
    if config.get("phoneme_type", "espeak") != "espeak":
        raise PiperError(f"{model.name} takes no espeak-ng phonemes; only voices that do are supported")
    return config
