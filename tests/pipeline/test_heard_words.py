"""What is shown, said and heard stays aligned by word, with a real voice and everything people write."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.speaking.reply_sound import ReplySound
from tts.hibari import HibariVoice
from tts.voice import VoiceChunk

WRITTEN = (
    "It costs $1,234.50, or 3.5% less before 2024-05-03. ",
    "Write to jane.doe+shop@example.co.uk, not to sales@example.com! ",
    "Your code is AB-12-X9, and the order is #40517. ",
    '**Call** +1 (415) 555-0123 at 10:30 a.m., ext. 7; "really". ',
    "See https://example.com/help?id=7 or [the list](http://a.bc): 5 km, 20 °C, 1/2 cup. ",
    "Dr. Łukasz Smith-Jones isn't at 12 St. James St. on Jan. 5th, I'm told… 😊\n\n",
)


@cache
def voice() -> HibariVoice:
    return HibariVoice()


@cache
def chunks_of(text: str) -> tuple[VoiceChunk, ...]:
    return tuple(voice().synthesise(text, cancelled=lambda: False))


def sound_of(sentences: list[str]) -> ReplySound:
    sound = ReplySound(voice().sample_rate)
    for text in sentences:
        sound.begin_sentence(text)
        for chunk in chunks_of(text):
            sound.append(chunk)
    sound.finish()
    return sound


@pytest.mark.parametrize("text", WRITTEN)
def test_every_written_word_is_said_once_and_in_order(text: str) -> None:
    words = [word for chunk in chunks_of(text) for word in chunk.words]
    last = 0
    for word in words:
        assert last <= word.start_char < word.end_char <= len(text)
        assert not any(map(str.isalnum, text[last : word.start_char].replace("http://a.bc", "")))
        last = word.end_char
    assert not any(map(str.isalnum, text[last:]))


@given(st.lists(st.sampled_from(WRITTEN), min_size=1, max_size=3), st.data())
@settings(max_examples=60, deadline=None)
def test_heard_text_grows_by_whole_written_words(sentences: list[str], data: st.DataObject) -> None:
    sound = sound_of(sentences)
    times = sorted(data.draw(st.lists(st.floats(0, sound.seconds), min_size=1, max_size=20)))
    edges = {0, len(sound.text), *(word.end_char for word in sound.words)}
    heard = [sound.heard_text(time) for time in times]
    for before, after in zip(heard, [*heard[1:], sound.text], strict=True):
        assert after.startswith(before)
        assert len(before) in edges
        assert not (before[-1:].isalnum() and sound.text[len(before) : len(before) + 1].isalnum())
    assert sound.heard_text(sound.seconds) == sound.text


@pytest.mark.parametrize(
    ("text", "whole"),
    [(WRITTEN[0], "$1,234.50"), (WRITTEN[1], "jane.doe+shop@example.co.uk"), (WRITTEN[2], "AB-12-X9")],
)
def test_an_amount_an_address_or_a_code_is_heard_whole_or_not(text: str, whole: str) -> None:
    sound = sound_of([text])
    begin, end = text.index(whole), text.index(whole) + len(whole)
    lengths = {len(sound.heard_text(step * 0.02)) for step in range(int(sound.seconds * 50))}
    assert not any(begin < length < end for length in lengths)
    assert end in lengths
