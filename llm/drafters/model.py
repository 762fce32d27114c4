"""A small model of the same vocabulary drafts for the target: the papers' own set-up."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from llm.cache import CallCache, Turnstile
from llm.drafters.base import Draft, ReplyState
from llm.processors import Law, LogitsRow
from llm.targets.base import Target
from llm.tokenizer import Tokenizer

GIVES_UP_BELOW = 0.4
"""A draft ends with a token that the draft model itself rates below this: the rest would be luck."""


class IncompatibleVocabulary(ValueError):
    """The draft model's ids do not mean what the target's mean."""


def check_vocabularies(target: Tokenizer, draft: Tokenizer) -> None:
    """Compare two vocabularies id by id. Either may be padded beyond the other with ids that spell nothing.

    Raises `IncompatibleVocabulary` naming the first id that differs.
    """
    ours, theirs = target.pieces(), draft.pieces()
    for token in sorted(ours.keys() | theirs.keys()):
        if ours.get(token) != theirs.get(token):
            raise IncompatibleVocabulary(
                f"the draft model's vocabulary differs from the target's: id {token} is "
                f"{ours.get(token)!r} for the target and {theirs.get(token)!r} for the draft model. "
                "Use a draft model of the same family"
            )


@dataclass
class DraftModel:
    """A draft model's weights, shared by calls, and what a token of it costs."""

    target: Target
    seconds_per_token: float

    @classmethod
    def measured(cls, target: Target, clock: Callable[[], float] = time.perf_counter) -> DraftModel:
        """Times single-token passes over a short context; the quickest counts."""
        cache = target.open()
        try:
            cache.extend([0] * min(64, target.context // 2), 1)
            quickest = float("inf")
            for _ in range(5):
                before = clock()
                cache.extend([0], 1)
                quickest = min(quickest, clock() - before)
        finally:
            cache.close()
        return cls(target, max(quickest, 1e-9))


class ModelDrafter:
    """One call's draft model: its own cache, rolled back with the target's.

    Each token is drawn from the draft model's law under the reply's own processors: with the target's noise
    under coupled verification, so that the two agree as often as their laws allow, and with noise of its own
    under rejection, where the law goes along with the draft.
    """

    name = "model"

    def __init__(self, model: DraftModel, passes: Turnstile) -> None:
        self._vocabulary = model.target.vocabulary
        self._cache = CallCache(model.target.open(), passes)
        self._room = model.target.context
        self.seconds_per_token = model.seconds_per_token

    def propose(self, state: ReplyState, budget: int) -> Draft:
        self._cache.keep_prefix(state.ids[:-1])
        unread = state.ids[len(self._cache) :]
        ids: list[int] = []
        laws: list[Law] = []
        while len(ids) < min(budget, self._room - len(state.ids)):
            row = self._cache.score(unread, 1)[0]
            law = state.processors.law(row, [*state.ids, *ids])
            position = state.position + len(ids)
            token, _ = state.noise.draw(law.ids, law.scores, position, state.purpose)
            ids.append(token)
            laws.append(law)
            unread = [token]
            if _probability(row, token) < GIVES_UP_BELOW:
                break
        return Draft(tuple(ids), self.name, 0, 0.6, tuple(laws))

    def observe(self, reply: Sequence[int]) -> None:
        pass

    def learn(self, ids: Sequence[int]) -> None:
        pass

    def close(self) -> None:
        self._cache.close()


def _probability(row: LogitsRow, token: int) -> float:
    """The token's probability before any processor, from logits float32 [vocabulary]."""
    weights = np.exp(row - row.max())
    return float(weights[token] / weights.sum())
