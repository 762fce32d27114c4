"""Voices by their names in the configuration."""

from __future__ import annotations

import sys

import pytest

from tests import models
from tests.tts.server import Script, speech_server, tone
from tts.load import load_voice
from tts.piper import PiperVoice
from tts.remote import RemoteVoiceError


def test_a_server_is_named_by_its_address_and_options() -> None:
    voice = load_voice("http://localhost:1/v1?model=kokoro&voice=bella&sample_rate=22050", api_key="k")
    assert (voice.name, voice.sample_rate) == ("remote:kokoro:bella", 22_050)


def test_the_embedded_voice_and_a_piper_voice(piper: PiperVoice) -> None:
    folder = models.path("piper-joe")
    assert load_voice("hibari", language="en-GB").name == "hibari"
    for voice in (load_voice(f"piper:{folder}"), load_voice("piper", path=folder)):
        assert voice.name == piper.name


def test_a_language_that_the_embedded_voice_does_not_speak() -> None:
    with pytest.raises(ValueError, match="speaks English, not 'es'"):
        load_voice("hibari", language="es")
    with speech_server(Script(statuses=[401])) as url, pytest.raises(RemoteVoiceError):
        list(load_voice(url, language="es").synthesise("Son 3 euros.", cancelled=lambda: False))


@pytest.mark.parametrize("language", ["en", "en-US"])
def test_the_embedded_voice_steps_in_for_a_server_in_any_english(language: str) -> None:
    with speech_server(Script(statuses=[401])) as url:
        chunks = load_voice(url, language=language).synthesise("It costs 3 euros.", cancelled=lambda: False)
        assert sum(chunk.samples.size for chunk in chunks)


def test_a_servers_voice_reads_numbers_in_its_language() -> None:
    with speech_server(script := Script(body=tone())) as url:
        list(load_voice(url, language="es").synthesise("Son 3 euros.", cancelled=lambda: False))
    assert script.requests[0]["input"] == "Son tres euros."


def test_coqui_without_its_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "TTS"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "TTS", None)
    with pytest.raises(ValueError, match=r"pip install 'rejoinder\[coqui\]'"):
        load_voice("coqui:tts_models/en/ljspeech/vits")


@pytest.mark.parametrize("rate", ["abc", "0", "-24000", "24e3", "1"])
def test_a_sample_rate_that_is_none_is_refused(rate: str) -> None:
    with pytest.raises(ValueError, match=rf"sample_rate={rate} in voice 'http.*': give whole hertz"):
        load_voice(f"http://localhost:1/v1?sample_rate={rate}")


@pytest.mark.parametrize("spec", ["", "espeak", "piper", "coqui", "coqui:", "http://localhost/v1?speed=2"])
def test_other_names_are_refused(spec: str) -> None:
    with pytest.raises(ValueError, match="voice"):
        load_voice(spec)
