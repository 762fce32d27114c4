"""Who stops whom: the policy for speech over the agent, by a table."""

from __future__ import annotations

import pytest

from pipeline.agent import Interruptions
from pipeline.hearing.interruption import is_backchannel, is_echo, is_murmur, judge, words

SAYS = "We are open Monday to Friday from eight in the morning to six in the evening."

WORDS = Interruptions(mode="words", words=1)
TWO = Interruptions(mode="words", words=2)
OFF = Interruptions(mode="off")
AT_ONCE = Interruptions(mode="at_once")


@pytest.mark.parametrize(
    ("policy", "text", "final", "verdict"),
    [
        (WORDS, "", False, "wait"),
        (WORDS, "", True, "resume"),
        (WORDS, " Mm-hm.", False, "wait"),
        (WORDS, " Mm-hm.", True, "resume"),
        (WORDS, " Yeah, right, okay.", True, "resume"),
        (WORDS, " I see.", True, "resume"),
        (WORDS, " Okay, but I", False, "stop"),
        (WORDS, " Wait!", False, "wait"),
        (WORDS, " Wait!", True, "stop"),
        (WORDS, " Wait, please", False, "wait"),
        (WORDS, " Wait, please, I", False, "stop"),
        (WORDS, " No.", True, "stop"),
        (TWO, " Wait!", False, "wait"),
        (TWO, " Wait!", True, "resume"),
        (TWO, " Wait, please, now.", False, "stop"),
        (OFF, " Stop it now!", False, "wait"),
        (OFF, " Stop it now!", True, "resume"),
        (AT_ONCE, "", False, "stop"),
        (AT_ONCE, "", True, "resume"),
        (AT_ONCE, " mm-hm", True, "stop"),
        (WORDS, " we are open Monday", False, "wait"),
        (WORDS, " We are open Monday to Friday.", True, "resume"),
        (WORDS, " we", False, "wait"),
        (WORDS, " from eight in the morning, right", True, "resume"),
        (WORDS, " Monday at nine please", True, "stop"),
    ],
)
def test_verdicts(policy: Interruptions, text: str, final: bool, verdict: str) -> None:
    assert judge(policy, text=text, final=final, agent_says=SAYS) == verdict


@pytest.mark.parametrize("policy", [WORDS, TWO, OFF])
def test_once_the_reply_is_over_any_word_is_a_turn(policy: Interruptions) -> None:
    assert judge(policy, text=" Yes.", final=True, agent_says="", turn_is_over=True) == "stop"
    assert judge(policy, text="", final=True, agent_says="", turn_is_over=True) == "resume"


@pytest.mark.parametrize("text", ["Mm-hm", "right.", "Yeah yeah", "uh-huh, okay", "That's right.", "", "..."])
def test_listening_noises(text: str) -> None:
    assert is_backchannel(text)


@pytest.mark.parametrize("text", ["right now", "yes but no", "stop", "okay Google", "no"])
def test_words_that_mean_something(text: str) -> None:
    assert not is_backchannel(text)


def test_echo_needs_the_agents_words_in_their_order() -> None:
    assert is_echo("open Monday to Friday", SAYS)
    assert is_echo("open Monday Friday from eight", SAYS)
    assert not is_echo("Friday to Monday open", SAYS)
    assert not is_echo("open Monday", SAYS)
    assert is_echo("open Monday", SAYS, final=False)
    assert not is_echo("can I book Monday please", SAYS)


@pytest.mark.parametrize(
    ("text", "echo"),
    [
        ("open Monday to", True),  # three words are enough to judge a final text
        ("we are open now Monday", True),  # four of five are the agent's
        ("are open now Monday", False),  # three of four
        ("we from morning", True),  # up to five of the agent's words may be missing between two
        ("we eight in", False),  # not six
        ("open Monday Monday to", False),
    ],
)
def test_echo_at_the_edges_of_the_rule(text: str, echo: bool) -> None:
    assert is_echo(text, SAYS) is echo


def test_before_the_caller_is_quiet_three_words_or_the_policys_count_are_needed() -> None:
    five = Interruptions(mode="words", words=5)
    said = ["Tell", "me", "about", "cats", "now"]
    for policy, needed in ((WORDS, 3), (TWO, 3), (five, 5)):
        verdicts = [
            judge(policy, text=" ".join(said[:count]), final=False, agent_says=SAYS) for count in range(1, 6)
        ]
        assert verdicts == ["wait"] * (needed - 1) + ["stop"] * (6 - needed)


def test_a_typographic_apostrophe_is_an_apostrophe() -> None:
    assert words("That’s IT, isn't it?") == ["that's", "it", "isn't", "it"]
    assert is_backchannel("That’s right.")


@pytest.mark.parametrize(
    ("text", "confidence", "murmur"),
    [
        ("Mom", 0.21, True),
        ("Mom", 0.49, True),
        ("Mom", 0.5, False),
        ("and Memechan.", 0.31, True),
        ("Tuesday", 0.99, False),
        ("Stop.", 0.38, False),
        ("I would like", 0.3, False),
    ],
)
def test_what_recognition_does_not_believe_in_is_a_murmur(text: str, confidence: float, murmur: bool) -> None:
    assert is_murmur(text, confidence) is murmur
    verdict = judge(WORDS, text=text, final=True, agent_says=SAYS, confidence=confidence)
    assert verdict == ("resume" if murmur else "stop")
