"""Phrases are synthesised once and remembered within bounds, a call's own no longer than the call."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tts.hibari import HibariVoice
from tts.phrases import PhraseCache, PreparedVoice
from tts.voice import Cancelled, Samples, Voice, VoiceChunk


class Counting:
    """A voice that notes what it was asked to say."""

    def __init__(self, voice: Voice) -> None:
        self._voice = voice
        self.name = voice.name
        self.sample_rate = voice.sample_rate
        self.asked: list[str] = []

    def warm_up(self) -> None:
        self._voice.warm_up()

    def synthesise(self, text: str, *, cancelled: Cancelled) -> Iterator[VoiceChunk]:
        self.asked.append(text)
        return self._voice.synthesise(text, cancelled=cancelled)


@pytest.fixture
def counting(hibari: HibariVoice) -> Counting:
    return Counting(hibari)


def audio_of(voice: Voice, text: str) -> Samples:
    chunks = list(voice.synthesise(text, cancelled=lambda: False))
    return np.concatenate([chunk.samples for chunk in chunks])


def test_a_prepared_phrase_is_made_once(counting: Counting) -> None:
    voice = PreparedVoice(counting, ["One moment."])
    voice.prepare(["One moment.", "Goodbye."])
    np.testing.assert_array_equal(audio_of(voice, "One moment."), audio_of(voice, "One moment."))
    assert counting.asked == ["One moment.", "Goodbye."]


def test_a_prepared_voice_keeps_nothing_of_what_else_it_says(counting: Counting) -> None:
    voice = PreparedVoice(counting, ["One moment."])
    audio_of(voice, "Your code is four.")
    audio_of(voice, "Your code is four.")
    assert counting.asked[1:] == ["Your code is four."] * 2


def test_one_calls_sentences_are_not_anothers(counting: Counting) -> None:
    shared = PreparedVoice(counting, ["One moment."])
    for call in (PhraseCache(shared), PhraseCache(shared)):
        for _ in range(2):
            audio_of(call, "One moment.")
            audio_of(call, "Your code is four.")
    assert counting.asked == ["One moment.", "Your code is four.", "Your code is four."]


def test_the_oldest_is_forgotten_first(counting: Counting) -> None:
    opening, line, colleague = "We open at nine.", "Please hold the line.", "I will ask a colleague."
    sizes = [audio_of(counting, text).nbytes for text in (opening, colleague)]
    counting.asked.clear()
    voice = PhraseCache(counting, most_bytes=sum(sizes))
    for text in (opening, line, opening, colleague):
        audio_of(voice, text)
    assert counting.asked == [opening, line, colleague]
    audio_of(voice, opening)
    audio_of(voice, colleague)
    assert counting.asked == [opening, line, colleague]
    audio_of(voice, line)
    assert counting.asked[3:] == [line]


def test_what_is_larger_than_the_cache_is_not_kept(counting: Counting) -> None:
    voice = PhraseCache(counting, most_bytes=1000)
    for _ in range(2):
        audio_of(voice, "We open at nine.")
    assert len(counting.asked) == 2


def test_long_texts_are_not_kept(counting: Counting) -> None:
    voice = PhraseCache(counting)
    for _ in range(2):
        audio_of(voice, "This is longer than the cache takes, " * 6)
    assert len(counting.asked) == 2


def test_a_cancelled_phrase_is_not_kept(hibari: HibariVoice) -> None:
    voice = PhraseCache(hibari)
    heard = [0]
    chunks = voice.synthesise("This one is cut off early.", cancelled=lambda: heard[0] > 0)
    for _ in chunks:
        heard[0] += 1
    assert heard == [1]
    np.testing.assert_array_equal(
        audio_of(voice, "This one is cut off early."), audio_of(hibari, "This one is cut off early.")
    )


def test_phrases_without_sound_are_told(hibari: HibariVoice) -> None:
    voice = PreparedVoice(hibari, ["One moment.", "...", "你好。"])
    assert voice.without_sound == ("...", "你好。")
