"""The required silence, by tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.turn_policy import Expecting, TurnPolicy, required_silence_ms

POLICY = TurnPolicy()
EXPECTING = st.sampled_from(["", "digits", "email", "yes_no"])


def required(
    transcript: str, probability: float | None = 0.99, expecting: Expecting = "", pause_ms: float = 0.0
) -> float:
    return required_silence_ms(
        POLICY,
        probability=probability,
        transcript=transcript,
        expecting=expecting,
        longest_pause_ms=pause_ms,
    )


@pytest.mark.parametrize(
    "transcript", ["What time do you open?", "No.", "I need two.", "Around 10", "Can I cancel?", ""]
)
def test_a_turn_that_sounds_and_reads_finished_needs_the_minimum(transcript: str) -> None:
    assert required(transcript) == POLICY.min_silence_ms


@pytest.mark.parametrize(
    "transcript",
    [
        "I would like to",
        "Can I book a table for,",
        "It's about the...",
        "Um",
        "My number is 555",
        "on Monday and.",
    ],
)
def test_an_unfinished_tail_waits_however_final_it_sounds(transcript: str) -> None:
    assert required(transcript) >= POLICY.unfinished_silence_ms


@pytest.mark.parametrize(
    ("expecting", "transcript", "over"),
    [
        ("digits", "555 217", False),
        ("digits", "It's 555-217-9430.", True),
        ("email", "It's anna.smith", False),
        ("email", "anna at example dot com", True),
        ("email", "anna@example.com.", True),
    ],
)
def test_what_was_asked_for_has_to_be_complete(expecting: Expecting, transcript: str, over: bool) -> None:
    assert (required(transcript, expecting=expecting) == POLICY.min_silence_ms) is over


@pytest.mark.parametrize(
    "transcript", ["I moved here last year", "What is that for?", "Could you?", "My name."]
)
def test_a_tail_that_may_go_on_is_not_sure(transcript: str) -> None:
    assert required(transcript) == POLICY.unsure_silence_ms


def test_yes_is_enough_for_a_yes_or_no_question() -> None:
    assert required("Yes, please.", probability=0.1, expecting="yes_no") == POLICY.min_silence_ms
    assert required("Yes, but I would", probability=0.1, expecting="yes_no") > POLICY.unsure_silence_ms


def test_a_caller_who_pauses_is_given_longer() -> None:
    assert required("I am here.", pause_ms=800) == pytest.approx(880)
    assert required("I am here.", pause_ms=5000) == POLICY.unsure_silence_ms


def test_without_the_detector_the_policy_is_unsure() -> None:
    assert required("I am here.", probability=None) == POLICY.unsure_silence_ms


@given(st.floats(0, 1), st.floats(0, 1), st.text(max_size=40), EXPECTING, st.floats(0, 1e5, allow_nan=False))
def test_a_surer_detector_never_makes_it_longer(
    one: float, other: float, transcript: str, expecting: Expecting, pause_ms: float
) -> None:
    low, high = sorted((one, other))
    shorter = required(transcript, high, expecting, pause_ms)
    assert POLICY.min_silence_ms <= shorter <= required(transcript, low, expecting, pause_ms)
    assert required(transcript, low, expecting, pause_ms) <= POLICY.max_silence_ms
