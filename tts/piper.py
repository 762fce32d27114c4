"""Piper voices from their files, streamed inside the sentence. Phonemes come from the program espeak-ng."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tts.loudness import gain_for
from tts.piper_network import PiperError, PiperNetwork
from tts.piper_phonemes import PiperPhonemes
from tts.segmented import SegmentedVoice

CALIBRATION = "1 2 3 4 5 6 7 8."
"""Said once, unheard, to learn the voice's own loudness; espeak-ng reads digits in any language."""


class PiperVoice(SegmentedVoice):
    """A Piper voice with espeak-ng phonemes, by its `.onnx` file or the folder that holds it.

    The voice's `.onnx.json` lies beside the model. `speaker` is the name or number of one of a voice with
    several; None takes its first. Raises PiperError, CutError or EspeakError, and ValueError
    for a language that cannot be read aloud.
    """

    phonemes: PiperPhonemes
    network: PiperNetwork

    def __init__(
        self,
        path: Path,
        *,
        speaker: str | None = None,
        threads: int = 1,
        pronunciations: Mapping[str, str] | None = None,
    ) -> None:
        model = _model_file(path)
        config = _read_config(model)
        try:
            sample_rate = int(config["audio"]["sample_rate"])
            language = str(config["espeak"]["voice"])
            inference = config["inference"]
            scales = [inference["noise_scale"], inference["length_scale"], inference["noise_w"]]
            ids = config["phoneme_id_map"]
        except KeyError as error:
            raise PiperError(f"{model}.json is no Piper voice's configuration: it lacks {error}") from error
        except (TypeError, ValueError) as error:
            raise PiperError(f"{model}.json is no Piper voice's configuration: {error}") from error
        phonemes = PiperPhonemes(language, ids)
        number = _speaker(config, speaker, model)
        try:
            network = PiperNetwork(
                model.read_bytes(), sample_rate=sample_rate, scales=scales, speaker=number, threads=threads
            )
        except ValueError as error:
            raise PiperError(f"{model} cannot be used: {error}. Fetch the voice again.") from error
        super().__init__(
            f"piper:{model.stem}" if speaker is None else f"piper:{model.stem}:{speaker}",
            sample_rate,
            phonemes,
            network,
            language=language.split("-")[0],
            gain=_calibrate(phonemes, network),
            pronunciations=pronunciations,
        )


def _calibrate(phonemes: PiperPhonemes, network: PiperNetwork) -> float:
    segments = phonemes.segments(CALIBRATION)
    return gain_for(np.concatenate([network.whole(network.encode(segment.ids)) for segment in segments]))


def _model_file(path: Path) -> Path:
    models = sorted(path.glob("*.onnx")) if path.is_dir() else [path]
    if len(models) != 1 or not models[0].is_file():
        raise PiperError(f"{path} is no Piper voice: give its .onnx file, or a folder with one .onnx file")
    return models[0]


def _read_config(model: Path) -> dict[str, Any]:
    path = Path(f"{model}.json")
    try:
        config = json.loads(path.read_bytes())  # which finds out the encoding
    except (OSError, ValueError) as error:
        raise PiperError(f"cannot read {path}, the voice's configuration: {error}") from error
    if not isinstance(config, dict):
        raise PiperError(f"{path} is no Piper voice's configuration")
    if config.get("phoneme_type", "espeak") != "espeak":
        raise PiperError(f"{model.name} takes no espeak-ng phonemes; only voices that do are supported")
    return config


def _speaker(config: dict[str, Any], speaker: str | None, model: Path) -> int | None:
    """The speaker's number, None for a voice with one."""
    count = int(config.get("num_speakers", 1))
    names: dict[str, int] = config.get("speaker_id_map") or {}
    if speaker is None:
        return 0 if count > 1 else None
    if count > 1 and speaker in names:
        return names[speaker]
    if count > 1 and speaker.isdecimal() and int(speaker) < count:
        return int(speaker)
    known = ", ".join(list(names)[:10]) or "none with a name"
    raise PiperError(f"{model.name} has no speaker {speaker!r}; of {count} there are: {known}")
