"""The real models, loaded once, and real speech: transcribed recordings of 16 kHz."""

from __future__ import annotations

import pytest

from asr.end_of_turn import SmartTurn
from asr.recogniser import Recogniser
from asr.vad import SileroVad
from fixtures.recordings import Recording, read_aloud
from tests.machine import recordings
from tests.models import path


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
    recordings()
    return read_aloud()
