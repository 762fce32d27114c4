"""Does what the caller says while the agent speaks end the reply? A pure policy, tested by a table."""

from __future__ import annotations

import re
from typing import Literal

from pipeline.agent import Interruptions

Verdict = Literal["wait", "resume", "stop"]

AGREEMENTS = (
    "I see",
    "Got it",
    "Of course",
    "All right",
    "That's right",
    "Thank you",
    "You know",
    "Oh okay",
    "Okay great",
)
"""Listening noises of several words. What is heard over the agent and sounds like one, alone, is taken to be
it: recognition knows little about half a second of speech ("Add it." for "Got it.").
"""

BACKCHANNELS = frozenset(
    [
        "ah",
        "aha",
        "ah-ha",
        "alright",
        "cool",
        "fine",
        "good",
        "great",
        "ha",
        "hm",
        "hmm",
        "huh",
        "i",
        "see",
        "mhm",
        "mm",
        "mmm",
        "mm-hm",
        "mm-hmm",
        "mhmm",
        "nice",
        "oh",
        "ok",
        "okay",
        "right",
        "sure",
        "thanks",
        "uh",
        "uh-huh",
        "uh-uh",
        "um",
        "wow",
        "yeah",
        "yep",
        "yes",
        "yup",
    ]
) | frozenset(map(str.lower, AGREEMENTS))
"""Said to keep the other one talking; they stop nobody."""

COMMANDS = frozenset(
    ["stop", "wait", "no", "hold", "hang", "hello", "sorry", "excuse", "listen", "quiet", "shush"]
)
"""Meant whatever else; recognition is not always sure of them when they stand alone."""

_WORDS_SO_FAR = 3
"""Real words that stop the agent while the caller is still speaking. Fewer may be a misheard listening noise;
the agent is silent meanwhile, so waiting for the next costs nobody anything."""

_MURMUR_WORDS = 2
_MURMUR_CONFIDENCE = 0.5
"""A humming caller is heard as a word or two that recognition itself does not believe in ("Mom" at 0.2);
words that were said alone have 0.5 and more, except some commands."""

_WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*", re.UNICODE)


def words(text: str) -> list[str]:
    """The words of a text, lower case, without punctuation."""
    return [w.replace("’", "'") for w in _WORD.findall(text.lower())]


def is_backchannel(text: str) -> bool:
    """Whether the text is only listening noises and agreement (or nothing)."""
    said = words(text)
    return not said or " ".join(said) in BACKCHANNELS or all(word in BACKCHANNELS for word in said)


def is_echo(text: str, agent_says: str, *, final: bool = True) -> bool:
    """Whether the text is what the agent itself is saying: the loudspeaker in the microphone.

    Its words must lie in the agent's words in the same order, with small gaps. A final text needs three words
    to be judged by them; a beginning of one or two words may still become an echo.
    """
    said, spoken = words(text), words(agent_says)
    if not said or (final and len(said) < 3):
        return False
    at, matched = 0, 0
    for word in said:
        try:
            at = spoken.index(word, at, at + 6) + 1 if matched else spoken.index(word) + 1
            matched += 1
        except ValueError:
            continue
    return matched >= 0.8 * len(said)


def is_murmur(text: str, confidence: float) -> bool:
    """Whether a final text is so short and so unsure that it stands for no words."""
    said = words(text)
    unsure = len(said) <= _MURMUR_WORDS and confidence < _MURMUR_CONFIDENCE
    return unsure and COMMANDS.isdisjoint(said)


def judge(
    policy: Interruptions,
    *,
    text: str,
    final: bool,
    agent_says: str,
    confidence: float = 1.0,
    turn_is_over: bool = False,
) -> Verdict:
    """What to do about speech over the agent.

    `text`: the words recognised so far, tentative ones included. `final`: the caller is quiet again and
    `text` is all there is; `confidence` is the mean probability of its words then. `agent_says`: the reply
    that plays. `turn_is_over`: the reply has been fully sent and heard.
    """
    if turn_is_over and words(text):
        return "stop"
    if policy.mode == "off":
        return "resume" if final else "wait"
    if policy.mode == "at_once":
        return "stop" if words(text) or not final else "resume"
    if is_backchannel(text) or is_echo(text, agent_says, final=final):
        return "resume" if final else "wait"
    if final and is_murmur(text, confidence):
        return "resume"
    needed = policy.words if final else max(policy.words, _WORDS_SO_FAR)
    if len(words(text)) >= needed:
        return "stop"
    return "resume" if final else "wait"
