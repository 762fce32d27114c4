"""Which words of a hypothesis will not change any more: a policy, asked after each pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Word:
    """`text` has its leading space; `start`, `end` are seconds since the utterance began."""

    text: str
    start: float
    end: float
    probability: float


class StabilityPolicy(Protocol):
    """Decides for one utterance which words will stay."""

    def stable(self, words: Sequence[Word], audio_end: float) -> int:
        """How many leading unsettled words to settle, given the end of the audio they were heard in."""
        ...


class AlignmentPolicy:
    """Settles words that ended some time before the end of the audio, from one hypothesis.

    The idea of AlignAtt (Papi et al., 2305.11408): a word that rests on audio well before the end would not
    be heard otherwise with more audio. The alignment comes after the pass and not within the decoder. A word
    that the model doubts waits longer, for its right context.
    """

    def __init__(self, seconds: float = 0.8, doubtful: float = 0.5, doubtful_seconds: float = 2.4) -> None:
        self._seconds = seconds
        self._doubtful = doubtful
        self._doubtful_seconds = doubtful_seconds

    def stable(self, words: Sequence[Word], audio_end: float) -> int:
        count = 0
        for word in words:
            guard = self._seconds if word.probability >= self._doubtful else self._doubtful_seconds
            if word.end > audio_end - guard:
                break
            count += 1
        return held_back(words, count)


class LocalAgreement:
    """Settles what two hypotheses in a row agree on (Liu et al., 2005.11185; Macháček et al., 2307.14743)."""

    def __init__(self) -> None:
        self._previous: list[str] = []

    def stable(self, words: Sequence[Word], audio_end: float) -> int:
        current = [_plain(word) for word in words]
        count = 0
        for before, now in zip(self._previous, current, strict=False):
            if before != now:
                break
            count += 1
        count = held_back(words, count)
        self._previous = current[count:]
        return count


def held_back(words: Sequence[Word], count: int) -> int:
    """`count` less what is never safe: the last word, and a number that may still grow."""
    count = min(count, len(words) - 1)
    while count > 0 and _numeric(words[count - 1]) and _numeric(words[count]):
        count -= 1
    return max(0, count)


def _plain(word: Word) -> str:
    return "".join(c for c in word.text.lower() if c.isalnum())


def _numeric(word: Word) -> bool:
    return any(c.isdigit() for c in word.text)
