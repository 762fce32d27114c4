"""Hallucinations are told from what was said by the audio that they claim."""

from __future__ import annotations

import pytest

from asr import hallucinations
from asr.whisper import DecodedSegment, Token


def test_text_that_begins_after_the_voice_is_not_kept() -> None:
    said, again = DecodedSegment(0.0, 3.0, (1, 2, 3)), DecodedSegment(3.0, 6.0, (1, 2, 3))
    assert hallucinations.spoken([said, again, again], voice_end=2.9) == [1, 2, 3]


def test_a_second_sentence_within_the_voice_is_kept() -> None:
    assert hallucinations.spoken(
        [DecodedSegment(0.0, 1.0, (1,)), DecodedSegment(1.0, 2.0, (2,))], voice_end=1.9
    ) == [1, 2]


def test_the_first_segment_continues_forced_text_and_is_always_kept() -> None:
    assert hallucinations.spoken([DecodedSegment(0.0, None, (4,))], voice_end=0.0) == [4]


def test_a_repetition_ends_the_text_where_words_lose_their_place() -> None:
    said = [Token(n, n * 0.2, n * 0.2 + 0.2, 0.9) for n in range(5)]
    looped = [Token(n, 1.0, 1.0, 0.99) for n in range(6)]
    assert hallucinations.placed([*said, *looped]) == 5
    assert hallucinations.placed([*said, *looped[:3]]) == 8


def test_the_limit_leaves_room_for_fast_speech() -> None:
    assert hallucinations.token_limit(1.0) >= 6
    assert hallucinations.token_limit(10.0) >= 60
    assert hallucinations.token_limit(-1.0) == hallucinations.SPARE_TOKENS


@pytest.mark.parametrize(
    ("text", "probability", "voice_seconds", "made_up"),
    [
        (" Thank you.", 0.2, 0.5, True),
        (" Thank you.", 0.9, 0.5, False),
        (" Okay", 0.38, 0.4, False),
        (" What time is it?", 0.25, 0.9, False),
        (" I'm not", 0.15, 0.3, True),
        (" What time is it?", 0.9, 0.05, True),
        (" ...", 0.9, 2.0, True),
        ("", 0.0, 2.0, True),
    ],
)
def test_noise_is_told_by_stock_phrases_in_doubt_and_by_hopeless_words(
    text: str, probability: float, voice_seconds: float, made_up: bool
) -> None:
    assert hallucinations.is_hallucination(text, probability, voice_seconds) is made_up
