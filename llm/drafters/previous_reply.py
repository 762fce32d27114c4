"""The previous revision's reply as a draft: the caller went on talking, the answer may well stay the same.

At the start of a reply it drafts the old reply from its first token, in the very pass that reads the new end
of the prompt. After a difference it looks for its place again.
"""

from __future__ import annotations

from collections.abc import Sequence

from llm.cache import common_prefix
from llm.drafters.base import NOTHING, Draft, FreeDrafter, ReplyState
from llm.drafters.token_index import TokenIndex


class PreviousReply(FreeDrafter):
    """Drafts from `ReplyState.previous`; without one it has nothing to say."""

    name = "reply"

    def __init__(self) -> None:
        self._previous: Sequence[int] = ()
        self._sequences = TokenIndex()

    def propose(self, state: ReplyState, budget: int) -> Draft:
        previous = state.previous
        if not previous:
            return NOTHING
        reply = state.ids[state.start :]
        shared = common_prefix(previous, reply)
        if shared == len(reply):
            return Draft(tuple(previous[shared : shared + budget]), self.name, 16, 0.9)
        self._index(previous)
        match = self._sequences.longest_match(reply, 2, budget)
        if match is not None:
            return Draft(match.continuation, self.name, match.length, 0.8)
        # One token was replaced by another: what came after the old one may well come after the new one.
        return Draft(tuple(previous[len(reply) : len(reply) + budget]), self.name, 1, 0.5)

    def _index(self, previous: Sequence[int]) -> None:
        if self._previous is not previous:
            self._previous = previous
            self._sequences = TokenIndex()
            self._sequences.add(previous)
