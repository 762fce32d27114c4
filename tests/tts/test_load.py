"""Voices by their names in the configuration."""

from __future__ import annotations

import pytest

from tests import models
from tts.load import load_voice
from tts.piper import PiperVoice


def test_a_server_is_named_by_its_address_and_options() -> None:
    voice = load_voice("http://localhost:1/v1?model=kokoro&voice=bella&sample_rate=22050", api_key="k")
    assert (voice.name, voice.sample_rate) == ("remote:kokoro:bella", 22_050)


def test_the_embedded_voice_and_a_piper_voice(piper: PiperVoice) -> None:
    folder = models.path("piper-joe")
    assert load_voice("hibari").name == "hibari"
    for voice in (load_voice(f"piper:{folder}"), load_voice("piper", path=folder)):
        assert voice.name == piper.name


@pytest.mark.parametrize("spec", ["", "espeak", "piper", "http://localhost/v1?speed=2"])
def test_other_names_are_refused(spec: str) -> None:
    with pytest.raises(ValueError, match="voice"):
        load_voice(spec)
