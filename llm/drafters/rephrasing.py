"""Rephrasing: the caller's words as an agent says them back or answers in them, facts as they are said in a
reply, and where in a text a reply has come to.

The rewritings are for English; text of other languages passes through them as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_SPELLED = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_DIGITS = {"oh": "0"} | {name: str(i) for i, word in enumerate(_SPELLED) for name in (word, str(i))}
_DIGIT = "(?:" + "|".join(_DIGITS) + ")"
_NUMBER = re.compile(rf"\b{_DIGIT}(?:,? {_DIGIT})+\b", re.IGNORECASE)

_TURNED = {"i": "you", "we": "you", "me": "you", "us": "you", "am": "are"}
_TURNED |= {"my": "your", "our": "your", "mine": "yours", "i'm": "you're", "i've": "you've"}
_PERSON = re.compile(r"\b(" + "|".join(sorted(_TURNED, key=len, reverse=True)) + r")\b", re.IGNORECASE)

_ASIDE = {"i": "you", "me": "you", "my": "your", "mine": "yours", "you": "we", "your": "our", "yours": "ours"}
_DROPPED = frozenset({"do", "does", "did"})
_CHOICE = re.compile(
    r"(can|could|may|will|would|should|must|do|does|did|am|are|is|was|were|have|has)\s+"
    r"((?:the|a|an|my|your|our|this|that|any)\s+\w+|\w+)\s+(.+?)[?\s]*",
    re.IGNORECASE,
)
_FRONTED = re.compile(
    r"((?:After|At|Before|During|For|From|In|On|Until)\b[^,.]*?),?\s+(we|you|it|there|they)\s+(.+?)([.!]?)"
)

_LONGEST_TAIL = 48
_LONGEST_QUESTION = 400
"""Characters: a longer one is not answered by its own words, and `_CHOICE` takes time by their square."""
_SHORT = 3


def in_digits(text: str) -> str:
    """Spelled digits as a number, grouped as they were said: "five five five, two one" is "555-21"."""
    return _NUMBER.sub(lambda number: "-".join(map(_figures, number.group().split(","))), text)


def turned(text: str) -> str:
    """What the caller said of themselves, said to them: "My name is" becomes "Your name is"."""

    def other(word: re.Match[str]) -> str:
        said = _TURNED[word.group().lower()]
        before = word.string[max(0, word.start() - 2) : word.start()].rstrip()
        return said if before and before[-1] not in ".!?" else said[0].upper() + said[1:]

    return _PERSON.sub(other, text)


def agreed(question: str) -> str:
    """What says yes to a question that can be said yes to, in its own words; else nothing.

    "Can I pay by card?" becomes "you can pay by card", "Do you have vans?" becomes "we have vans".
    """
    return _stated(question, "")


def denied(question: str) -> str:
    """What says no to it: "we do not have vans"."""
    return _stated(question, "not")


def _stated(question: str, negation: str) -> str:
    asked = question.strip()
    choice = _CHOICE.fullmatch(asked) if len(asked) <= _LONGEST_QUESTION else None
    if choice is None:
        return ""
    verb, subject, rest = choice.group(1).lower(), choice.group(2), choice.group(3)
    said_of = "are" if verb == "am" else "" if verb in _DROPPED and not negation else verb
    words = " ".join(filter(None, (subject, said_of, negation, rest))).replace("can not", "cannot")
    return re.sub(r"\w+", lambda word: _ASIDE.get(word.group().lower(), word.group()), words)


def in_plain_order(fact: str) -> str:
    """A sentence with what stood before its subject behind it: "On Sunday we are closed." becomes "We are
    closed on Sunday.", as it is said in a reply."""
    parts = _FRONTED.fullmatch(fact)
    if parts is None:
        return fact
    front, subject, rest, end = parts.groups()
    return f"{subject.capitalize()} {rest} {front[0].lower()}{front[1:]}{end}"


STYLES: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    in_digits,
    turned,
    lambda text: turned(in_digits(text)),
)
"""Ways to say again what a caller said."""


def where(text: str, said: str, since: int = 0) -> tuple[int, int]:
    """Where in `text` the longest end of `said` that occurs there ends, and how long that is; else 0, 0.

    Ends begin with a word. Case matters to a word of one or two letters alone, which also has to be a whole
    one; digits need not be. Of several places the first that ends at `since` or behind it counts.
    """
    tail = said[-_LONGEST_TAIL:]
    for start in range(len(tail)):
        if tail[start].isalnum() and not (start and tail[start - 1].isalnum()):
            end = _found(text, tail[start:], max(0, since - (len(tail) - start)))
            if end < 0:
                end = _found(text, tail[start:], 0)
            if end >= 0:
                return end, len(tail) - start
    return 0, 0


def _found(text: str, tail: str, since: int) -> int:
    """Where the first occurrence of `tail` that begins a word ends; -1 where there is none."""
    if len(tail) >= _SHORT:
        text, tail = text.lower(), tail.lower()
    at = text.find(tail, since)
    while at >= 0:
        end = at + len(tail)
        whole = len(tail) >= _SHORT or tail.isdigit() or not text[end : end + 1].isalnum()
        if whole and not (at and text[at - 1].isalnum()):
            return end
        at = text.find(tail, at + 1)
    return -1


def _figures(spelled: str) -> str:
    return "".join(_DIGITS[word.lower()] for word in spelled.split())
