"""What every voice keeps to, whichever engine it is."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

from tests.tts.conftest import SENTENCE
from tts.voice import Voice, VoiceChunk

LONG = "The quick brown fox jumps over the lazy dog, and then it sleeps. " * 154


def never() -> bool:
    return False


def say(voice: Voice, text: str) -> list[VoiceChunk]:
    return list(voice.synthesise(text, cancelled=never))


def samples(chunks: list[VoiceChunk]) -> np.ndarray:
    return np.concatenate([chunk.samples for chunk in chunks])


def test_audio_is_mono_float32_within_range(voice: Voice) -> None:
    chunks = say(voice, SENTENCE)
    assert voice.sample_rate in (16_000, 22_050, 24_000)
    assert len(chunks) > 2
    for chunk in chunks:
        assert chunk.samples.dtype == np.float32
        assert chunk.samples.ndim == 1
        assert len(chunk.samples)
        assert np.isfinite(chunk.samples).all()
        assert np.abs(chunk.samples).max() <= 1.0
    assert np.abs(samples(chunks)).max() > 0.1


def test_the_first_sound_comes_at_once_and_the_end_is_a_short_gap(voice: Voice) -> None:
    audio = np.abs(samples(say(voice, SENTENCE)))
    loud = np.flatnonzero(audio > 0.02)
    assert loud[0] < 0.06 * voice.sample_rate
    assert 0.3 < (len(audio) - loud[-1]) / voice.sample_rate < 0.5


def test_every_written_word_is_timed_in_order_inside_the_audio(voice: Voice) -> None:
    chunks = say(voice, SENTENCE)
    words = [word for chunk in chunks for word in chunk.words]
    spoken = [SENTENCE[word.start_char : word.end_char].strip(".,") for word in words]
    assert spoken == SENTENCE.rstrip(".").replace(",", "").split()
    length = len(samples(chunks)) / voice.sample_rate
    assert all(0 <= word.start <= word.end <= length + 1e-6 for word in words)
    assert all(before.end <= after.start + 1e-6 for before, after in pairwise(words))


def test_words_come_with_the_chunk_in_which_they_begin_or_later(voice: Voice) -> None:
    seconds = 0.0
    for chunk in say(voice, SENTENCE):
        seconds += len(chunk.samples) / voice.sample_rate
        assert all(word.start <= seconds for word in chunk.words)


def test_cancelling_between_chunks_stops_without_another(voice: Voice) -> None:
    cancelled = threading.Event()
    chunks = voice.synthesise("One sentence to say, and a good deal more of it.", cancelled=cancelled.is_set)
    next(chunks)
    cancelled.set()
    assert list(chunks) == []


def test_cancelled_before_it_began_says_nothing(voice: Voice) -> None:
    assert list(voice.synthesise("Never said before.", cancelled=lambda: True)) == []


@pytest.mark.parametrize(
    "text", ["", " ", "\n\n", "...", "?!", "—", "***", "()", "\x00\x07", "\ud800", "😀", "`"]
)
def test_nothing_sayable_gives_no_audio(voice: Voice, text: str) -> None:
    assert say(voice, text) == []


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "7",
        "Tab\tand\x00null\x1b[31m.",
        "A lone \ud83d surrogate.",
        "<speak>Hello <break time='1s'/> you.</speak>",
        "Привет, 你好, مرحبا, and hello.",
        "naïve café, Łódź, Ærø.",
        "x" * 500,
        "no end mark at all",
        "Wait... what?! Yes!!!",
    ],
)
def test_odd_text_is_said_without_babble(voice: Voice, text: str) -> None:
    chunks = say(voice, text)
    assert chunks
    audio = samples(chunks)
    assert np.isfinite(audio).all()
    assert len(audio) / voice.sample_rate < 3 + 0.2 * len(text)


def test_a_written_word_in_another_script_is_never_said(voice: Voice) -> None:
    text = "Я said hello to Łukasz, 你好."
    words = [text[word.start_char : word.end_char] for chunk in say(voice, text) for word in chunk.words]
    assert [word for word in words if word.isascii()] == ["said", "hello", "to"]


@pytest.mark.parametrize("name", ["hibari", "piper"])
def test_words_in_other_scripts_are_left_out_and_counted(
    request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    voice: Voice = request.getfixturevalue(name)
    text = "Я said hello to Łukasz, 你好."
    with caplog.at_level(logging.INFO, logger="tts"):
        assert say(voice, "Привет, 你好!") == []
        words = [word for chunk in say(voice, text) for word in chunk.words]
    assert [text[word.start_char : word.end_char] for word in words] == ["said", "hello", "to", "Łukasz"]
    assert f"{voice.name} has no sounds for 2 words" in caplog.text
    assert "Привет" not in caplog.text, "what is said is in the latency log, if it may be, and nowhere else"


def test_ten_thousand_characters_start_at_once_and_stop_when_told(voice: Voice) -> None:
    assert len(LONG) > 10_000
    heard: list[VoiceChunk] = []
    for chunk in voice.synthesise(LONG, cancelled=lambda: len(heard) >= 5):
        assert len(chunk.samples) < 10 * voice.sample_rate
        heard.append(chunk)
    assert len(heard) == 5


def test_two_threads_give_the_audio_that_each_gives_alone(voice: Voice) -> None:
    texts = ["We open at nine.", "Please call back tomorrow, if you can."]
    alone = [samples(say(voice, text)) for text in texts]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda text: samples(say(voice, text)), texts * 3))
    for index, audio in enumerate(together):
        np.testing.assert_array_equal(audio, alone[index % 2])
