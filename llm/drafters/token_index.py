"""An index of token sequences by their pairs: finds where the last tokens have occurred before."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from llm.cache import common_prefix

LONGEST_MATCH = 16
MOST_OCCURRENCES = 32


@dataclass(frozen=True, slots=True)
class Match:
    """The longest earlier occurrence: `length` matching tokens, then `continuation`.

    `share`: of the occurrences that long, the part that went on with the same token.
    """

    length: int
    continuation: tuple[int, ...]
    share: float


class TokenIndex:
    """Token sequences indexed by their pairs. They may grow and be rolled back; the oldest are evicted."""

    def __init__(self, most_tokens: int = 65_536) -> None:
        self._most_tokens = most_tokens
        self._tokens = 0
        self._documents: dict[int, list[int]] = {}
        self._next = 0
        self._pairs: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)

    def add(self, ids: Sequence[int]) -> int:
        """Index a sequence of its own; returns its number. Drops the oldest when there is too much."""
        number = self._next
        self._next += 1
        self._documents[number] = []
        self.grow(number, ids)
        while self._tokens > self._most_tokens and len(self._documents) > 1:
            self._evict(next(iter(self._documents)))
        return number

    def __contains__(self, number: int) -> bool:
        """Whether the sequence of that number has not been dropped."""
        return number in self._documents

    def grow(self, number: int, ids: Sequence[int]) -> None:
        """Append to a sequence."""
        document = self._documents[number]
        for token in ids:
            if document:
                self._pairs[document[-1], token].append((number, len(document)))
            document.append(token)
        self._tokens += len(ids)

    def follow(self, number: int, ids: Sequence[int]) -> None:
        """Make a sequence equal to `ids`, keeping what they share."""
        document = self._documents[number]
        shared = common_prefix(document, ids)
        for at in range(len(document) - 1, max(shared, 1) - 1, -1):
            self._forget((document[at - 1], document[at]), (number, at))
        self._tokens -= len(document) - shared
        del document[shared:]
        self.grow(number, ids[shared:])

    def longest_match(self, ids: Sequence[int], at_least: int, budget: int) -> Match | None:
        """The longest occurrence of the end of `ids`, of at least `at_least` (2 or more) tokens.

        Among occurrences of that length the continuation that most of them have wins, the latest of those is
        followed.
        """
        if len(ids) < at_least or budget < 1:
            return None
        best: list[tuple[int, int]] = []
        longest = at_least
        for number, at in reversed(self._pairs.get((ids[-2], ids[-1]), [])[-MOST_OCCURRENCES:]):
            document = self._documents[number]
            if at + 1 >= len(document):
                continue
            length = _agreement(document, at, ids)
            if length > longest:
                longest, best = length, [(number, at)]
            elif length == longest:
                best.append((number, at))
        if not best:
            return None
        votes = Counter(self._documents[number][at + 1] for number, at in best)
        token, count = max(votes.items(), key=lambda vote: vote[1])  # a Counter keeps order: the latest first
        number, at = next((n, a) for n, a in best if self._documents[n][a + 1] == token)
        continuation = tuple(self._documents[number][at + 1 : at + 1 + budget])
        return Match(longest, continuation, count / len(best))

    def _evict(self, number: int) -> None:
        document = self._documents.pop(number)
        for at in range(1, len(document)):
            self._forget((document[at - 1], document[at]), (number, at))
        self._tokens -= len(document)

    def _forget(self, pair: tuple[int, int], place: tuple[int, int]) -> None:
        places = self._pairs[pair]
        places.remove(place)
        if not places:
            del self._pairs[pair]


def _agreement(document: Sequence[int], at: int, ids: Sequence[int]) -> int:
    """How many tokens up to document[at], itself included, equal the end of ids; capped."""
    length = 0
    while length < min(LONGEST_MATCH, at + 1, len(ids)) and document[at - length] == ids[-1 - length]:
        length += 1
    return length
