"""The fact drafter: finds the taught fact that answers the question by the words they share, and drafts it.

The other drafters need tokens of the reply before they can draft. A question and the fact that answers
it share words, so this one drafts a whole sentence before the first token. Where the caller said something
and asks to have it read back, their own words are the guess. Both are compared with the reply as text: the
same words are other tokens behind a quotation mark, or at the beginning of a sentence.
"""

from __future__ import annotations

import math
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llm.drafters.base import NOTHING, Draft, FreeDrafter, ReplyState
from llm.drafters.rephrasing import STYLES, agreed, denied, in_plain_order, where

MOST_FACTS = 256
_LONGEST_OPENING = 12
_TAIL = 24
_MOST_CHARACTERS = 120
_BEGINNING = 10
_SURE = 6
"""Characters in common that say where in a text the reply is; fewer may be chance."""

_YES, _NO = "Yes, ", "No"
_LOOSE, _OPENED, _CLOSE, _ASKED, _AGREED = 4, 8, 12, 16, 24
"""The strength of a draft (`Draft.evidence`), apart from the strengths of a guess at a whole reply: the gate
learns about each on its own. The words of a question are seldom said again, those of a request often.
"""

_WORDS = re.compile(r"[^\W_]+")
_SENTENCES = re.compile(r"(?<=[.!?:])\s+")
_ENDING = re.compile(r"(?<=..)(ing|ed|es|s)$")
_STEM = 5

Encode = Callable[[str], Sequence[int]]
Decode = Callable[[Sequence[int]], str]


@dataclass(frozen=True, slots=True)
class _Guess:
    """A sentence that the reply may be. `strength`: 0 for the caller's own words, 1 to 3 for a fact."""

    text: str
    strength: int

    @property
    def confidence(self) -> float:
        return 0.45 + 0.1 * self.strength if self.strength else 0.3


class FactDrafter(FreeDrafter):
    """Drafts the taught sentence that shares the most telling words with what the caller asked."""

    name = "answer"  # as the rows of the latency log call it

    def __init__(self, encode: Encode, decode: Decode) -> None:
        self._encode, self._decode = encode, decode
        self._facts: OrderedDict[str, frozenset[str]] = OrderedDict()
        self._common: Counter[str] = Counter()
        self._style = 0
        self._openings: dict[tuple[bool, str], str] = {}
        self._begin("")

    def propose(self, state: ReplyState, budget: int) -> Draft:
        reply = state.ids[state.start :]
        if not reply or state.asked != self._asked:
            self._begin(state.asked)
        if not reply:
            return self._whole(budget)
        said = self._decode(reply[-_TAIL:])
        text, end, matched = self._place(said)
        if text[end:]:
            close = matched >= _SURE
            if self._is_question and text not in self._guesses:
                return self._draft(text[end:], budget, _ASKED + 4 * close, 0.25)
            return self._draft(text[end:], budget, _CLOSE if close else _LOOSE, 0.5)
        return self._behind_opening(said, budget) if len(said) <= _LONGEST_OPENING else NOTHING

    def observe(self, reply: Sequence[int]) -> None:
        """Remember in which style the caller's words were said back, and what a guess was opened with."""
        said = self._decode(reply)
        words = set(_WORDS.findall(said))
        alike = [len(words & set(_WORDS.findall(style(self._asked)))) for style in STYLES]
        if alike[self._style] < max(alike):
            self._style = alike.index(max(alike))
        if self._guess is not None:
            at = said.lower().find(self._guess.text[:_BEGINNING].lower())
            if 0 <= at <= _LONGEST_OPENING:
                self._openings[self._kind(self._guess)] = said[:at]

    def learn(self, ids: Sequence[int]) -> None:
        fact = in_plain_order(self._decode(ids))
        if fact in self._facts:
            return
        self._facts[fact] = _stems(fact)
        self._common.update(self._facts[fact])
        if len(self._facts) > MOST_FACTS:
            _, stems = self._facts.popitem(last=False)
            self._common.subtract(stems)

    def _begin(self, asked: str) -> None:
        """A new question: choose the guess, and the texts that the reply may be found in."""
        self._asked = asked
        self._is_question = asked.rstrip().endswith("?")
        question = _SENTENCES.split(asked.strip())[-1] if self._is_question else ""
        self._agreed, self._denied = agreed(question), denied(question)
        self._fact = self._best(asked)
        own = self._agreed and (self._fact is None or re.match(r"you (can|could|may)\b", self._agreed))
        self._guess = _Guess(self._agreed, 0) if own else self._fact
        self._guesses = [guess.text for guess in (self._guess, self._fact) if guess is not None]
        styles = [style(asked).rstrip("? ") for style in (STYLES[self._style], *STYLES)]
        self._places = dict.fromkeys((*self._guesses, *styles), 0)

    def _whole(self, budget: int) -> Draft:
        """The guess from its beginning, opened as it was the last time somebody asked like this."""
        if self._guess is None:
            return NOTHING
        opening = self._openings.get(self._kind(self._guess), _YES if self._agreed else "")
        text = opening + _inside(self._guess.text) if opening else self._guess.text
        evidence = self._guess.strength + (_AGREED if self._agreed else 0)
        return self._draft(text, budget, evidence, self._guess.confidence)

    def _behind_opening(self, said: str, budget: int) -> Draft:
        """The guess behind a word like "Yes," that is not part of it."""
        guess = self._guess
        if self._denied and said.startswith(_NO):
            guess = self._fact or _Guess(self._denied, 0)
        if guess is None or not (said.endswith(",") or said.isalpha()):
            return NOTHING
        text = ("" if said.endswith(",") else ",") + " " + _inside(guess.text)
        return self._draft(text, budget, _OPENED, guess.confidence)

    def _place(self, said: str) -> tuple[str, int, int]:
        """Where the reply is, in the guess or the caller's own words: text, place, how much matches."""
        found = {text: where(text, said, since) for text, since in self._places.items()}
        text, (end, matched) = max(found.items(), key=lambda item: item[1][1])
        if not matched:
            return "", 0, 0
        self._places[text] = end
        return text, end, matched

    def _draft(self, text: str, budget: int, evidence: int, confidence: float) -> Draft:
        ids = tuple(self._encode(text[:_MOST_CHARACTERS]))
        return Draft(ids[:budget], self.name, evidence, confidence)

    def _kind(self, guess: _Guess) -> tuple[bool, str]:
        """What openings go by: whether it is a fact, and the first word of what the caller asked at last.
        All questions that can be said yes to are one kind."""
        if self._agreed:
            return guess.strength > 0, _YES
        words = _SENTENCES.split(self._asked.strip())[-1].lower().split()
        return guess.strength > 0, words[0] if words else ""

    def _best(self, asked: str) -> _Guess | None:
        sentences = _SENTENCES.split(asked.strip())
        request = len(sentences) > 1 and not sentences[-1].endswith("?")
        if request and sentences[0].endswith(":"):
            return self._own(sentences[1])
        fact, score = self._telling(_stems(sentences[-1] if request else asked))
        if score >= 1.0:
            return _Guess(fact, min(3, int(score)))
        return self._own(sentences[0]) if request else None

    def _own(self, sentence: str) -> _Guess:
        said = STYLES[self._style](sentence)
        return _Guess(said[:1].upper() + said[1:], 0)

    def _telling(self, stems: frozenset[str]) -> tuple[str, float]:
        """The fact that has the most of these words in common, and how much that is."""
        scores = {fact: sum(map(self._weight, stems & own)) for fact, own in self._facts.items()}
        return max(scores.items(), key=lambda item: item[1], default=("", 0.0))

    def _weight(self, stem: str) -> float:
        """How telling a shared word is: long ones and those of few facts are."""
        rarity = math.log((1 + len(self._facts)) / self._common[stem]) / math.log(1 + len(self._facts))
        return rarity * min(len(stem) - 2, 3) / 2 if len(stem) > 2 else 0.0


def _inside(text: str) -> str:
    """A sentence as it is written behind others' words."""
    return text if re.match(r"I\b", text) else text[:1].lower() + text[1:]


def _stems(text: str) -> frozenset[str]:
    """Words without their endings, roughly: "cancelled" and "cancellation" are one."""
    return frozenset(_ENDING.sub("", word)[:_STEM] for word in _WORDS.findall(text.lower()))
