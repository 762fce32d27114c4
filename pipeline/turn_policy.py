"""How long the caller must be quiet before the turn is theirs no more: a pure function of what is known.

Silence alone is a poor judge: people pause in the middle of sentences for as long as they pause after them.
The end-of-turn detector hears the prosody, the transcript's tail shows an unfinished clause, a number that is
being dictated shows itself, and a caller who has paused long once will do so again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Expecting = Literal["", "digits", "email", "yes_no"]


@dataclass(frozen=True)
class TurnPolicy:
    """All in milliseconds of silence since the true end of speech.

    The defaults cut off one hesitation in ten that is inside a sentence, with half a second to wait at the
    median (`bench/endpoint.py`); a silence alone would have to be a second for the same.
    """

    soft_end_ms: float = 200.0
    """When the answer is drafted and the detector is asked."""
    min_silence_ms: float = 500.0
    """Before a turn that sounds and reads finished is committed."""
    unsure_silence_ms: float = 1200.0
    """Before a turn is committed that the detector has not judged, or at least this where the transcript does
    not end like a sentence."""
    unfinished_silence_ms: float = 1600.0
    """At least this after a tail that cannot end a sentence, or inside a number or an address."""
    max_silence_ms: float = 2000.0
    """The hard limit: after so much silence every turn is over."""
    sure: float = 0.7
    """The detector's probability from which only `min_silence_ms` is required."""


# Words that do not end an English sentence, except in a quotation of themselves.
_DANGLING = frozenset(
    {
        *(
            "a",
            "an",
            "the",
            "my",
            "your",
            "our",
            "their",
            "his",
            "its",
            "this",
            "these",
            "those",
            "some",
            "any",
        ),
        *(
            "and",
            "or",
            "but",
            "so",
            "because",
            "if",
            "when",
            "while",
            "unless",
            "until",
            "although",
            "whether",
        ),
        *(
            "to",
            "of",
            "for",
            "from",
            "with",
            "at",
            "in",
            "on",
            "by",
            "about",
            "into",
            "than",
            "between",
            "near",
        ),
        *(
            "i",
            "i'm",
            "we're",
            "you're",
            "they're",
            "i'd",
            "we'd",
            "i'll",
            "we'll",
            "is",
            "are",
            "was",
            "were",
        ),
        *(
            "um",
            "uh",
            "er",
            "erm",
            "hmm",
            "like",
            "well",
            "actually",
            "maybe",
            "let's",
            "please could",
            "very",
        ),
        *(
            "would",
            "could",
            "should",
            "can",
            "will",
            "what",
            "which",
            "whose",
            "where",
            "how",
            "that's",
            "it's",
        ),
    }
)
_YES_NO = frozenset(
    {
        *(
            "yes",
            "yeah",
            "yep",
            "yup",
            "sure",
            "okay",
            "ok",
            "right",
            "correct",
            "exactly",
            "absolutely",
            "please",
        ),
        *(
            "no",
            "nope",
            "nah",
            "not",
            "never",
            "thanks",
            "thank",
            "you",
            "of",
            "course",
            "that's",
            "it",
            "is",
        ),
    }
)
_DIGITS = 7  # a dictated number with fewer is not over
_DICTATED = re.compile(r"(?:\d[\s,.-]*)+$")
_ADDRESS = re.compile(r"(@|\bat\b).*(\.|\bdot\b)\s*[a-z]{2,}\W*$", re.IGNORECASE)


def required_silence_ms(
    policy: TurnPolicy,
    *,
    probability: float | None,
    transcript: str,
    expecting: Expecting = "",
    longest_pause_ms: float = 0.0,
) -> float:
    """Milliseconds of silence after which the turn is committed.

    Never rises with the detector's `probability` (None: not judged yet); lies within the policy's minimum and
    maximum. `transcript`: the turn so far. `expecting`: what the agent has asked for. `longest_pause_ms`: the
    longest pause inside this caller's turns so far.
    """
    if expecting == "yes_no" and _is_yes_or_no(transcript):
        return policy.min_silence_ms
    required = _for_probability(policy, probability)
    if _unfinished(transcript, expecting):
        required = max(required, policy.unfinished_silence_ms)
    elif expecting == "" and _doubtful(transcript):
        required = max(required, policy.unsure_silence_ms)
    # Longer than this caller's pauses, as far as a quick answer can still be quick.
    required = max(required, min(1.1 * longest_pause_ms, policy.unsure_silence_ms))
    return min(max(required, policy.min_silence_ms), policy.max_silence_ms)


def _for_probability(policy: TurnPolicy, probability: float | None) -> float:
    """A straight line from the maximum at 0 to the minimum at `sure`."""
    if probability is None:
        return policy.unsure_silence_ms
    doubt = max(0.0, 1.0 - probability / policy.sure)
    return policy.min_silence_ms + doubt * (policy.max_silence_ms - policy.min_silence_ms)


def _unfinished(transcript: str, expecting: Expecting) -> bool:
    text = transcript.strip()
    if not text:
        return False
    if expecting == "email":
        return _ADDRESS.search(text) is None
    if expecting == "digits":
        return sum(character.isdigit() for character in text) < _DIGITS
    dictated = _DICTATED.search(text)
    if dictated is not None:
        fewest = 1 if "number" in text.lower() else 3
        return fewest <= sum(character.isdigit() for character in dictated[0]) < _DIGITS
    if text.endswith((",", "-", "…", "...", ";", ":")):
        return True
    return text.split()[-1].strip(".?!,").lower() in _DANGLING and not text.endswith("?")


def _doubtful(transcript: str) -> bool:
    """No end mark (but for numbers, after which recognisers leave it out), a question that ends in a dangling
    word, or no more than the opening of a sentence ("Could you?", as recognisers write it)."""
    words = [word.strip(".?!,").lower() for word in transcript.split()]
    if not words:
        return False
    closed = transcript.strip()[-1] in ".?!" or words[-1][-1:].isdigit()
    return not closed or words[-1] in _DANGLING or (len(words) <= 2 and words[0] in _DANGLING)


def _is_yes_or_no(transcript: str) -> bool:
    words = re.findall(r"[a-z']+", transcript.lower())
    return 0 < len(words) <= 5 and all(word in _YES_NO for word in words)
