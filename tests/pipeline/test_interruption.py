"""Who stops whom: the policy for speech over the agent, by a table."""

from __future__ import annotations

import pytest

from pipeline.agent import Interruptions
from pipeline.hearing.interruption import is_backchannel, is_echo, is_murmur, judge

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
    ("text", "confidence", "murmur"),
    [
        ("Mom", 0.21, True),
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
