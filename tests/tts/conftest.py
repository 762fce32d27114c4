"""One embedded voice, one Piper voice and one remote voice for all tests of this room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import models
from tests.machine import program
from tests.tts.server import Script, speech_server, tone
from tts.hibari import HibariVoice
from tts.phrases import PhraseCache, PreparedVoice
from tts.piper import PiperVoice
from tts.remote import RemoteSettings, RemoteVoice
from tts.voice import Voice

SENTENCE = "We are open from nine to five, and it costs $3.50."


@pytest.fixture(scope="session")
def hibari() -> HibariVoice:
    return HibariVoice()


@pytest.fixture(scope="session")
def piper() -> PiperVoice:
    program("espeak-ng")
    return PiperVoice(models.path("piper-joe"))


@pytest.fixture(scope="session")
def remote() -> Iterator[RemoteVoice]:
    with speech_server(Script(body=tone())) as url:
        yield RemoteVoice(RemoteSettings(url))


@pytest.fixture(params=["hibari", "piper", "remote", "cached"])
def voice(request: pytest.FixtureRequest) -> Voice:
    if request.param == "cached":
        return PhraseCache(PreparedVoice(request.getfixturevalue("hibari"), [SENTENCE]))
    found: Voice = request.getfixturevalue(request.param)
    return found
