"""The required silence, by tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.turns.completeness import ExpectedAnswer, tail
from pipeline.turns.policy import TurnPolicy, required_silence_ms

POLICY = TurnPolicy()
EXPECTING = st.sampled_from(["", "digits", "email", "yes_no"])
SHARE = st.floats(0, 1)


def required(
    transcript: str,
    probability: float | None = 0.99,
    expecting: ExpectedAnswer = "",
    pause_ms: float = 0.0,
    closing: float | None = 0.99,
) -> float:
    return required_silence_ms(
        POLICY,
        probability=probability,
        transcript=transcript,
        closing=closing,
        expecting=expecting,
        longest_pause_ms=pause_ms,
    )


@pytest.mark.parametrize(
    "transcript",
    [
        "What time do you open?",
        "No.",
        "Yes, please.",
        "Tuesday.",
        "Thanks, bye.",
        "I need two.",
        "Monday, no, Tuesday.",
        "I'd like to book a table for four, please.",
        "Can I cancel?",
        "How much is it?",
        "If it rains, we stay at home.",
        "",
    ],
)
def test_a_turn_that_sounds_and_reads_finished_needs_the_minimum(transcript: str) -> None:
    assert required(transcript) == POLICY.min_silence_ms


@pytest.mark.parametrize(
    "transcript",
    [
        "Um,",
        "Um",
        "Monday, no,",
        "I'd like to…",
        "I would like to",
        "I'd like to book an appointment for next.",
        "Can I book a table for,",
        "It's about the...",
        "My number is 555",
        "The order number is 4.",
        "It's Anna at",
        "on Monday and.",
        "If it rains on Saturday.",
        "Because my train is late.",
        "He has never been.",
    ],
)
def test_an_unfinished_tail_waits_however_final_it_sounds(transcript: str) -> None:
    assert required(transcript) >= POLICY.unfinished_silence_ms


@pytest.mark.parametrize(
    "transcript",
    ["I moved here last year", "What is that for?", "Could you?", "My name.", "Is there", "the order"],
)
def test_a_tail_that_may_go_on_is_not_sure(transcript: str) -> None:
    assert required(transcript) == POLICY.unsure_silence_ms


@pytest.mark.parametrize(
    ("expecting", "transcript", "over"),
    [
        ("digits", "555 217", False),
        ("digits", "It's 555-217-9430.", True),
        ("digits", "555 217 9430", True),
        ("email", "It's anna.smith", False),
        ("email", "anna at example dot com", True),
        ("email", "anna@example.com.", True),
    ],
)
def test_what_was_asked_for_has_to_be_complete_and_needs_no_mark(
    expecting: ExpectedAnswer, transcript: str, over: bool
) -> None:
    assert (required(transcript, expecting=expecting, closing=0.0) == POLICY.min_silence_ms) is over


def test_yes_is_enough_for_a_yes_or_no_question() -> None:
    assert required("Yes, please.", probability=0.1, expecting="yes_no") == POLICY.min_silence_ms
    assert required("Yes, but I would", probability=0.1, expecting="yes_no") >= POLICY.unfinished_silence_ms


def test_a_doubtful_mark_waits_however_final_it_sounds() -> None:
    sure, doubtful, none = (required("I am here.", closing=closing) for closing in (0.9, 0.5, 0.0))
    assert POLICY.min_silence_ms == sure < doubtful < none == POLICY.max_silence_ms


@pytest.mark.parametrize(
    "transcript", ["Around 10", "yes", "Okay", "No thanks", "Thank you, bye", "It's anna@example.com"]
)
def test_numbers_short_answers_and_addresses_need_no_mark(transcript: str) -> None:
    assert required(transcript, closing=0.0) == POLICY.min_silence_ms
    assert required(transcript, closing=0.0, probability=0.0) < POLICY.unsure_silence_ms


@pytest.mark.parametrize("transcript", ["Tuesday", "Peter Miller", "at 3 o'clock", "the blue one"])
def test_of_a_few_words_without_a_mark_the_detector_is_the_judge(transcript: str) -> None:
    assert required(transcript, closing=0.0) == POLICY.min_silence_ms
    assert required(transcript, closing=0.0, probability=0.0) == POLICY.max_silence_ms


def test_the_detector_alone_goes_a_part_of_the_way_beside_a_mark_and_all_of_it_without() -> None:
    span = POLICY.max_silence_ms - POLICY.min_silence_ms
    assert required("I am here.", probability=0.0) == pytest.approx(
        POLICY.min_silence_ms + POLICY.detector_share * span
    )
    assert required("", probability=0.0, closing=None) == POLICY.max_silence_ms


def test_a_caller_who_pauses_is_given_longer() -> None:
    assert required("I am here.", pause_ms=800) == pytest.approx(880)
    assert required("I am here.", pause_ms=5000) == POLICY.unsure_silence_ms


def test_without_the_detector_the_policy_is_unsure() -> None:
    assert required("I am here.", probability=None) == POLICY.unsure_silence_ms


@given(SHARE, SHARE, SHARE, st.text(max_size=40), EXPECTING, st.floats(0, 1e5, allow_nan=False))
def test_a_surer_detector_or_mark_never_makes_it_longer(
    one: float, other: float, third: float, transcript: str, expecting: ExpectedAnswer, pause_ms: float
) -> None:
    low, high = sorted((one, other))
    for detector in (True, False):
        longer, shorter = (
            required(transcript, share, expecting, pause_ms, third)
            if detector
            else required(transcript, third, expecting, pause_ms, share)
            for share in (low, high)
        )
        assert POLICY.min_silence_ms <= shorter <= longer <= POLICY.max_silence_ms


@given(st.text(max_size=200), EXPECTING)
def test_any_text_reads_somehow(transcript: str, expecting: ExpectedAnswer) -> None:
    assert tail(transcript, expecting) in ("finished", "doubtful", "unfinished")


@pytest.mark.parametrize(
    ("transcript", "probability", "silence_ms"),
    [
        ("I am here.", 0.99, 340),  # sounds and reads finished
        ("I am here.", 0.7, 340),
        ("I am here.", 0.35, 664),  # the detector half sure: 340 + 0.5 * 0.3 * 2160
        ("I am here.", 0.0, 988),
        ("What is that for?", 0.99, 2000),  # a tail that may go on
        ("I am here.", None, 2000),  # not judged
        ("Um,", 0.99, 2500),  # a tail that cannot end
    ],
)
def test_the_defaults_in_milliseconds(transcript: str, probability: float | None, silence_ms: float) -> None:
    """What the README quotes was measured with these; a change of a constant is a change of this table."""
    assert required(transcript, probability, closing=0.9) == pytest.approx(silence_ms)
    assert POLICY.soft_end_ms == 200


def test_of_a_caller_whose_pauses_are_not_known_nothing_more_is_asked() -> None:
    required_ms = required_silence_ms(POLICY, probability=0.99, transcript="I am here.")
    assert required_ms == POLICY.min_silence_ms
