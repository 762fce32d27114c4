"""What every drafter has to keep to."""

from __future__ import annotations

from typing import Any

from llm.drafters.base import Draft, Drafter, ReplyState


def proposal(drafter: Drafter, state: ReplyState, budget: int) -> Draft:
    """Its proposal: never more than asked for, the ids left alone, the same when asked again."""
    before = list(state.ids)
    draft = drafter.propose(state, budget)
    assert len(draft.ids) <= budget
    assert state.ids == before
    assert not draft.ids or draft.source == drafter.name
    assert 0.0 <= draft.confidence <= 1.0
    assert drafter.propose(state, budget).ids == draft.ids
    return draft


class UnderContract:
    """A drafter whose every proposal is checked, for one that only drafts inside a running reply."""

    def __init__(self, drafter: Drafter) -> None:
        self._drafter = drafter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._drafter, name)

    def propose(self, state: ReplyState, budget: int) -> Draft:
        return proposal(self._drafter, state, budget)
