"""Does what was said so far read like the end of a turn? Judged by its last words, as recognisers write them.

Pure, and of English: in another language nothing but the marks speaks against the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

ExpectedAnswer = Literal["", "digits", "email", "yes_no"]
Tail = Literal["finished", "doubtful", "unfinished"]

# Words that do not end an English sentence, except in a quotation of themselves.
_DANGLING = re.compile(
    r"a|an|the|my|your|our|their|his|its|this|these|those|some|any|every|each|next|such"
    r"|and|or|but|so|because|if|when|while|unless|until|although|whether|as|than"
    r"|to|of|for|from|with|at|in|on|by|about|into|between|near|during|without"
    r"|i|i'm|we're|you're|they're|i'd|we'd|i'll|we'll|i've|we've"
    r"|is|are|was|were|am|be|been|being|would|could|should|can|will|must"
    r"|what|which|whose|where|how|that's|it's|who's|what's|there's"
    r"|um|uh|er|erm|hmm|like|well|actually|maybe|let's|very|also|even|rather|just"
)
# Words that open a sentence: two words of which this is the first are rarely all of one. The first few may
# open what is no sentence ("the blue one") as well.
_OPENING_A_NAME = re.compile(r"the|a|an|this|that|these|those")
_OPENING = re.compile(
    r"my|our|your|his|her|there|it|he|she|we|they|you|i|i'm|i've|we're|it's|he's|she's"
    r"|is|are|was|were|am|do|does|did|have|has|had|can|could|would|will|should|may|must"
    r"|what|which|who|whose|where|when|how|why|if|and|but|or|so|because|um|uh|like|well|actually|maybe"
)
_SUBORDINATE = re.compile(r"((and|but|so|well),? )?(if|unless|because|although|since|once|whenever)\b[^,]*")
_SHORT_ANSWER = re.compile(
    r"yes|yeah|yep|yup|sure|okay|ok|right|correct|exactly|absolutely|please|fine|good"
    r"|no|nope|nah|not|never|thanks|thank|you|of|course|that's|all|it|is|hello|hi|bye|goodbye|bye-bye"
)
_FRAGMENT = 4  # words at most
_DIGITS = 7  # a dictated number with fewer is not over
_DICTATED = re.compile(r"(?:\d[\s,.-]*)+$")
_ADDRESS = re.compile(r"(@|\bat\b).*(\.|\bdot\b)\s*[a-z]{2,}\W*$", re.IGNORECASE)


def tail(transcript: str, expecting: ExpectedAnswer = "") -> Tail:
    """How the turn so far ends. `expecting`: what the agent has asked for. Nothing said is finished."""
    text = transcript.strip()
    words = [word.strip(".?!,").lower() for word in text.split()]
    if not any(words):
        return "finished"
    if expecting == "email":
        return "finished" if _ADDRESS.search(text) else "unfinished"
    if expecting == "digits":
        return "finished" if _digits(text) >= _DIGITS else "unfinished"
    if (dictated := _DICTATED.search(text)) is not None:
        fewest = 1 if "number" in text.lower() else 3
        return "unfinished" if fewest <= _digits(dictated[0]) < _DIGITS else "finished"
    asks = text.endswith("?")
    dangles = _DANGLING.fullmatch(words[-1]) is not None
    subordinate = _SUBORDINATE.fullmatch(text.lower()) is not None
    if text.endswith((",", "-", "…", "...", ";", ":")) or ((dangles or subordinate) and not asks):
        return "unfinished"
    if needs_no_mark(text) or is_fragment(text):
        return "finished"
    return "doubtful" if text[-1] not in ".?!" or dangles or _only_opens(words) else "finished"


def is_short_answer(transcript: str) -> bool:
    """A word or a few that are a whole turn: yes, no, thanks, a greeting; "is it" opens a question."""
    words = re.findall(r"[a-z'-]+", transcript.lower())
    return 0 < len(words) <= 5 and words[0] != "is" and all(map(_SHORT_ANSWER.fullmatch, words))


def needs_no_mark(transcript: str) -> bool:
    """Recognisers leave the closing mark out after numbers and addresses and doubt it after short answers."""
    text = transcript.strip()
    return text[-1:].isdigit() or _ADDRESS.search(text) is not None or is_short_answer(text)


def is_fragment(transcript: str) -> bool:
    """A few words without a mark that open no sentence ("Peter Miller"): the missing mark says nothing."""
    text = transcript.strip()
    words = text.lower().split()
    return (
        0 < len(words) <= _FRAGMENT
        and text[-1] not in ".?!"
        and not needs_no_mark(text)
        and _OPENING.fullmatch(words[0]) is None
        and not _only_opens(words)
    )


def _only_opens(words: Sequence[str]) -> bool:
    opens = _OPENING.fullmatch(words[0]) or _OPENING_A_NAME.fullmatch(words[0])
    return len(words) <= 2 and opens is not None


def _digits(text: str) -> int:
    return sum(character.isdigit() for character in text)
