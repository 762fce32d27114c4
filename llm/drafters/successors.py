"""A bigram drafter: what has always, or nearly always, followed the last token.

A one-token key matches everywhere, so prompt lookup leaves it alone. Where what followed was the same every
time it still says a lot: the rest of a name that was just begun, the next key of a form that is filled in
once more. After Token Recycling (Luo et al. 2024, 2408.08696), which keeps the candidates of every token.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

from llm.cache import common_prefix
from llm.drafters.base import NOTHING, Draft, FreeDrafter, ReplyState

LEAST_SHARE = 0.75
LONGEST_CHAIN = 6


class SuccessorDrafter(FreeDrafter):
    """Drafts a chain of tokens that each nearly always followed the one before, in this call's texts."""

    name = "successor"

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._next: defaultdict[int, Counter[int]] = defaultdict(Counter)

    def propose(self, state: ReplyState, budget: int) -> Draft:
        self._follow(state.ids)
        if state.position == 0:
            return NOTHING
        ids: list[int] = []
        last, evidence, confidence = state.ids[-1], 0, 1.0
        while len(ids) < min(budget, LONGEST_CHAIN):
            following = self._next.get(last)
            if not following:
                break
            token, count = following.most_common(1)[0]
            share = count / following.total()
            if share < LEAST_SHARE or token in ids:
                break
            if not ids:
                evidence, confidence = min(count, 3), share
            ids.append(token)
            last = token
        return Draft(tuple(ids), self.name, evidence, 0.5 * confidence)

    def observe(self, reply: Sequence[int]) -> None:
        self._count(reply, 1)

    def _follow(self, ids: Sequence[int]) -> None:
        shared = common_prefix(self._ids, ids)
        self._count(self._ids[max(shared - 1, 0) :], -1)
        del self._ids[shared:]
        self._ids.extend(ids[shared:])
        self._count(self._ids[max(shared - 1, 0) :], 1)

    def _count(self, ids: Sequence[int], change: int) -> None:
        for token, following in pairwise(ids):
            counts = self._next[token]
            counts[following] += change
            if counts[following] == 0:
                del counts[following]
