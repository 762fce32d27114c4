"""A small model of the same vocabulary drafts for the target: the papers' own set-up."""

from __future__ import annotations

import time
from dataclasses import dataclass

from llm.cache import PREFILL_CHUNK, Beginnings, CallCache
from llm.drafters.base import Draft, FreeDrafter, ReplyState
from llm.drafters.sampled_draft import SampledDraft
from llm.drafters.timing import Clock, quickest
from llm.fair_lock import FairLock
from llm.targets.base import Target
from llm.tokenizer import Tokenizer

GIVES_UP_BELOW = 0.4
"""A draft ends with a token that the draft model rates below this: those after it are seldom accepted."""


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
    def measured(cls, target: Target, clock: Clock = time.perf_counter) -> DraftModel:
        """Times single-token passes over a short context; the quickest counts."""
        cache = target.open()
        try:
            cache.extend([0] * min(64, target.context // 2), 1)
            return cls(target, quickest(lambda: cache.extend([0], 1), clock))
        finally:
            cache.close()


class ModelDrafter(FreeDrafter):
    """One call's draft model: its own cache, rolled back with the target's."""

    name = "model"

    def __init__(self, model: DraftModel, pass_lock: FairLock, beginnings: Beginnings | None = None) -> None:
        """`beginnings`: the agents' prompts as the draft model has read them."""
        self._cache = CallCache(model.target.open(), pass_lock, beginnings)
        self._room = model.target.context
        self.seconds_per_token = model.seconds_per_token

    def propose(self, state: ReplyState, budget: int) -> Draft:
        self._cache.begin(state.ids[:-1])
        unread = state.ids[len(self._cache) :]
        drawn = SampledDraft(state, min(budget, self._room - len(state.ids)), GIVES_UP_BELOW)
        if not drawn.over:
            # A prompt that it has not read, in pieces: other calls want their passes in between.
            alone = (len(unread) - 1) // PREFILL_CHUNK * PREFILL_CHUNK
            self._cache.read(unread[:alone], state.cancelled)
            unread = unread[alone:]
        while not drawn.over and not state.cancelled():
            unread = [drawn.add(self._cache.score(unread, 1)[0])]
        return drawn.draft(self.name)

    def close(self) -> None:
        self._cache.close()
