"""Drafts sampled token by token from rows of logits, as the target samples its own."""

from __future__ import annotations

import numpy as np

from llm.drafters.base import Draft, ReplyState
from llm.processors import LogitsRow, TokenDistribution


class SampledDraft:
    """A draft in the making.

    Each token is drawn from its row's distribution under the reply's own processors: with the target's noise
    under coupled verification, so that the two agree as often as their distributions allow, and with noise of
    its own under rejection, where the distributions are part of the draft.
    """

    def __init__(self, state: ReplyState, longest: int, gives_up_below: float) -> None:
        """Over after `longest` tokens, after an end, and after one that its row rates below the bound."""
        self._state = state
        self._longest = longest
        self._gives_up_below = gives_up_below
        self._distributions: list[TokenDistribution] = []
        self.ids: list[int] = []
        self.over = longest < 1

    def add(self, row: LogitsRow) -> int:
        """Draw the next token from logits float32 [vocabulary]."""
        state = self._state
        distribution = state.processors.distribution(row, [*state.ids, *self.ids])
        token, _ = state.noise.draw(
            distribution.ids, distribution.scores, state.position + len(self.ids), state.purpose
        )
        self.ids.append(token)
        self._distributions.append(distribution)
        unsure = _probability(row, token) < self._gives_up_below
        self.over = unsure or len(self.ids) == self._longest or token in state.processors.ends
        return token

    def draft(self, source: str) -> Draft:
        return Draft(tuple(self.ids), source, 0, 0.6, tuple(self._distributions))


def _probability(row: LogitsRow, token: int) -> float:
    """The token's probability before any processor, from logits float32 [vocabulary]."""
    weights = np.exp(row - row.max())
    return float(weights[token] / weights.sum())
