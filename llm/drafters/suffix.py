"""Suffix store (after SuffixDecoding, 2411.04975): what followed in earlier replies and taught texts."""

from __future__ import annotations

from collections.abc import Sequence

from llm.drafters.base import NOTHING, Draft, FreeDrafter, ReplyState
from llm.drafters.prompt_lookup import (
    CARRIES,
    SHORTEST_MATCH,
    Bare,
    confidence_of,
    keeps_line_breaks,
    spoken_line,
)
from llm.drafters.tenant_memory import TenantMemory


class SuffixDrafter(FreeDrafter):
    """Drafts from the tenant's memory across calls; the present call's own text is prompt lookup's."""

    name = "suffix"

    def __init__(self, memory: TenantMemory, bare: Bare = keeps_line_breaks) -> None:
        self._memory = memory
        self._bare = bare

    def propose(self, state: ReplyState, budget: int) -> Draft:
        match = self._memory.longest_match(state.ids, SHORTEST_MATCH, budget)
        if match is None:
            return NOTHING
        ids = spoken_line(match.continuation[: CARRIES * match.length], self._bare)
        return Draft(ids, self.name, match.length, confidence_of(match.length) * match.share)

    def observe(self, reply: Sequence[int]) -> None:
        self._memory.add_text(reply)

    def learn(self, ids: Sequence[int]) -> None:
        self._memory.teach_text(ids)
