"""Which words are settled, by tables."""

from __future__ import annotations

import pytest

from asr.stability import AlignmentPolicy, LocalAgreement, Word


def words(text: str, probability: float = 0.9) -> list[Word]:
    """One word each half second."""
    return [Word(f" {word}", n * 0.5, n * 0.5 + 0.5, probability) for n, word in enumerate(text.split())]


@pytest.mark.parametrize(("audio_end", "count"), [(1.2, 0), (1.9, 2), (2.4, 3), (2.9, 4), (9.0, 4)])
def test_words_settle_once_they_are_away_from_the_audios_end(audio_end: float, count: int) -> None:
    assert AlignmentPolicy(seconds=0.8).stable(words("i would like a table"), audio_end) == count


def test_a_doubtful_word_waits_for_more_context_and_holds_those_after_it() -> None:
    hypothesis = words("my name is")
    hypothesis[1] = words("x margaret", probability=0.3)[1]
    policy = AlignmentPolicy(seconds=0.5, doubtful=0.5, doubtful_seconds=3.0)
    assert policy.stable([*hypothesis, *words("and")], 3.0) == 1
    assert policy.stable([*hypothesis, *words("and")], 4.5) == 3


def test_the_last_word_never_settles() -> None:
    assert AlignmentPolicy().stable(words("tuesday"), 60.0) == 0
    assert AlignmentPolicy().stable([], 60.0) == 0


def test_a_number_settles_only_as_a_whole() -> None:
    policy = AlignmentPolicy()
    assert policy.stable(words("dial 555 217"), 60.0) == 1
    assert policy.stable(words("dial 555 217 please"), 60.0) == 3


def test_two_hypotheses_settle_what_they_agree_on() -> None:
    policy = LocalAgreement()
    assert policy.stable(words("i would like"), 1.5) == 0
    assert policy.stable(words("I would, like a table"), 2.5) == 3
    assert policy.stable(words("a cable for"), 3.5) == 1
