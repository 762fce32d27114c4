"""A remote voice against a real server on a local socket."""

from __future__ import annotations

import logging
import socket

import numpy as np
import pytest

from tests.tts.server import Script, speech_server, tone
from tts.hibari import HibariVoice
from tts.phrases import PhraseCache
from tts.remote import TRIES, RemoteSettings, RemoteVoice, RemoteVoiceError
from tts.voice import Samples, Voice

TEXT = "It costs $3.50, *really*."


def audio_of(voice: Voice, text: str = TEXT) -> Samples:
    chunks = list(voice.synthesise(text, cancelled=lambda: False))
    return np.concatenate([chunk.samples for chunk in chunks])


def test_the_request_is_what_the_protocol_asks_for() -> None:
    script = Script(body=tone())
    with speech_server(script) as url:
        settings = RemoteSettings(url + "/", model="m", voice="v", api_key="secret")
        audio = audio_of(RemoteVoice(settings))
    assert script.requests == [
        {
            "model": "m",
            "voice": "v",
            "input": "It costs three dollars and fifty cents, really.",
            "response_format": "pcm",
            "path": "/v1/audio/speech",
        }
    ]
    assert script.headers[0]["Authorization"] == "Bearer secret"
    assert len(audio) / 24_000 == pytest.approx(1.0 + 0.35, abs=0.03)


def test_samples_cut_in_two_by_the_network_are_whole_again() -> None:
    with speech_server(Script(body=tone(lead=0.0), piece=999)) as url:
        audio = audio_of(RemoteVoice(RemoteSettings(url)))
    sent = np.frombuffer(tone(lead=0.0), "<i2").astype(np.float32) / 32768
    begin = int(np.argmax(np.abs(sent) > 0.39))
    ours = int(np.argmax(np.abs(audio) > 0.39))
    np.testing.assert_array_equal(audio[ours : ours + 20_000], sent[begin : begin + 20_000])


def test_a_busy_server_is_asked_again() -> None:
    script = Script(statuses=[503, 200], body=tone())
    with speech_server(script) as url:
        assert len(audio_of(RemoteVoice(RemoteSettings(url))))
    assert len(script.requests) == 2


@pytest.mark.parametrize(
    ("script", "asked"),
    [
        (Script(statuses=[500]), TRIES),
        (Script(statuses=[401]), 1),
        (Script(content_type="application/json", body=b'{"error": "no"}'), TRIES),
        (Script(body=b""), TRIES),
    ],
)
def test_without_audio_the_fallback_speaks_and_the_log_says_why(
    script: Script, asked: int, hibari: HibariVoice, caplog: pytest.LogCaptureFixture
) -> None:
    with speech_server(script) as url, caplog.at_level(logging.WARNING):
        audio = audio_of(RemoteVoice(RemoteSettings(url), fallback=hibari))
    np.testing.assert_array_equal(audio, audio_of(hibari))
    assert len(script.requests) == asked
    assert "saying it with hibari" in caplog.text


def test_a_server_that_is_not_there_falls_back_too(hibari: HibariVoice) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
    settings = RemoteSettings(url, sample_rate=16_000)
    audio = audio_of(RemoteVoice(settings, fallback=hibari))
    assert len(audio) == pytest.approx(len(audio_of(hibari)) * 2 / 3, abs=2)
    with pytest.raises(RemoteVoiceError, match="no audio from"):
        audio_of(RemoteVoice(settings))


def test_audio_that_breaks_off_ends_the_unit_where_it_was(caplog: pytest.LogCaptureFixture) -> None:
    with speech_server(Script(body=tone(), break_after=30_000)) as url, caplog.at_level(logging.WARNING):
        audio = audio_of(RemoteVoice(RemoteSettings(url)))
    assert 0.3 < len(audio) / 24_000 < 1.0
    assert "broke off" in caplog.text


def test_a_unit_that_broke_off_is_asked_for_again() -> None:
    script = Script(body=tone(), break_after=24_000)
    with speech_server(script) as url:
        voice = PhraseCache(RemoteVoice(RemoteSettings(url)))
        assert len(audio_of(voice)) == len(audio_of(voice))
    assert len(script.requests) == 2


def test_every_word_is_timed_though_the_rate_was_a_guess() -> None:
    text = "one two three four five six seven eight nine ten eleven twelve"
    with speech_server(Script(body=tone(seconds=0.5))) as url:
        chunks = list(RemoteVoice(RemoteSettings(url)).synthesise(text, cancelled=lambda: False))
    words = [word for chunk in chunks for word in chunk.words]
    assert [text[word.start_char : word.end_char] for word in words] == text.split()
    assert words[-1].end <= sum(len(chunk.samples) for chunk in chunks) / 24_000 + 1e-9
