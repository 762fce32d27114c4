"""Phrases that replies begin with: drafted before the first token."""

from __future__ import annotations

from collections.abc import Sequence

from llm.drafters.base import NOTHING, Draft, FreeDrafter, ReplyState
from llm.drafters.tenant_memory import LONGEST_PHRASE, TenantMemory


class PhraseDrafter(FreeDrafter):
    """Drafts how earlier replies of this tenant, and phrases it was taught, went on from this beginning."""

    name = "phrase"

    def __init__(self, memory: TenantMemory) -> None:
        self._memory = memory

    def propose(self, state: ReplyState, budget: int) -> Draft:
        begun = state.ids[state.start :]
        if len(begun) >= LONGEST_PHRASE:
            return NOTHING
        match = self._memory.phrase_after(begun, budget)
        if match is None:
            return NOTHING
        evidence = min(len(begun), 4)
        return Draft(match.continuation, self.name, evidence, match.share * (0.3 + 0.15 * evidence))

    def observe(self, reply: Sequence[int]) -> None:
        self._memory.add_phrase(reply)

    def learn(self, ids: Sequence[int]) -> None:
        if len(ids) <= LONGEST_PHRASE:
            self._memory.teach_phrase(ids)
