"""Early exit: the target's own first layers draft, with its final norm and head (LayerSkip, 2404.16710).

Nothing is trained and nothing is loaded. What the layers leave in the key-value cache at drafted positions is
what the checking pass writes there anyway. Whether it pays depends on the model: one that was not trained to
exit early is seldom right after half of its layers, and then the gate does not ask.
"""

from __future__ import annotations

import time

from llm.cache import CallCache
from llm.drafters.base import NOTHING, Draft, FreeDrafter, ReplyState
from llm.drafters.learned.compatibility import HeadsError
from llm.drafters.sampled_draft import SampledDraft
from llm.drafters.timing import Clock, quickest
from llm.fair_lock import FairLock
from llm.targets.base import PeekingTarget, Target

GIVES_UP_BELOW = 0.4
"""A draft ends with a token that the first layers rate below this."""

MOST_UNREAD = 8
"""Unread ids before which nothing is drafted: at the end of a prompt, reading them twice would cost more."""


class EarlyExitDrafting:
    """A target's first layers as a drafter, shared by calls."""

    def __init__(self, layers: int, target: Target, clock: Clock = time.perf_counter) -> None:
        """Times one drafted token. Raises `HeadsError` where the target cannot exit after so many layers."""
        if not isinstance(target, PeekingTarget):
            raise HeadsError(f"{target.name} cannot run its first layers alone")
        if not 1 <= layers < target.layers:
            raise HeadsError(f"{target.name} can exit after 1 to {target.layers - 1} layers, not {layers}")
        self.layers = layers
        cache = CallCache(target.open(), FairLock())
        try:
            cache.score([0], 0)
            self.seconds_per_token = quickest(lambda: cache.peek([0], 0, layers), clock)
        finally:
            cache.close()

    def open(self, cache: CallCache) -> EarlyExitDrafter:
        """A call's drafter."""
        return EarlyExitDrafter(self, cache)


class EarlyExitDrafter(FreeDrafter):
    """Drafts with the first layers, ahead of what the cache has read."""

    name = "early-exit"

    def __init__(self, drafting: EarlyExitDrafting, cache: CallCache) -> None:
        self.seconds_per_token = drafting.seconds_per_token
        self._layers = drafting.layers
        self._cache = cache

    def propose(self, state: ReplyState, budget: int) -> Draft:
        unread = state.ids[len(self._cache) :]
        if len(unread) > MOST_UNREAD:
            return NOTHING
        drawn = SampledDraft(state, budget, GIVES_UP_BELOW)
        ahead = 0
        while not drawn.over:
            row = self._cache.peek(unread, ahead, self._layers)[0]
            ahead += len(unread)
            unread = [drawn.add(row)]
        return drawn.draft(self.name)
