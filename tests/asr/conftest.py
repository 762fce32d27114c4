"""The real models, loaded once, and real speech: transcribed recordings of 16 kHz."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest
import soundfile

from asr.audio import Audio
from asr.end_of_turn import SmartTurn
from asr.recogniser import Recogniser
from asr.vad import SileroVad
from tests.machine import recordings
from tests.models import path

RATE = 16_000


@dataclass(frozen=True)
class Recording:
    audio: Audio
    text: str


@pytest.fixture(scope="session")
def vad() -> SileroVad:
    return SileroVad()


@pytest.fixture(scope="session")
def recogniser(vad: SileroVad) -> Recogniser:
    recogniser = Recogniser(path("whisper-base"), vad=vad)
    recogniser.warm_up()
    return recogniser


@pytest.fixture(scope="session")
def smart_turn() -> SmartTurn:
    return SmartTurn(path("smart-turn-v3.2"))


@pytest.fixture(scope="session")
def sentences() -> list[Recording]:
    """Five sentences read by one speaker, 3 to 7 s each."""
    folder = recordings() / "librivox"
    lines = (folder / "transcription").read_text().splitlines()
    found = [re.fullmatch(r"<s> (.*) </s> \((.*)\)", line.strip()) for line in lines]
    return [
        Recording(soundfile.read(folder / f"{match[2]}.wav", dtype="float32")[0], match[1])
        for match in found
        if match
    ]


def silence(seconds: float) -> Audio:
    return np.zeros(round(seconds * RATE), np.float32)
