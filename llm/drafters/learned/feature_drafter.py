"""Drafting with a feature layer: EAGLE's head, or a checkpoint's own multi-token-prediction layer."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch

from llm.cache import CallCache, common_prefix
from llm.drafters.base import NOTHING, Draft, FreeDrafter, ReplyState
from llm.drafters.learned.compatibility import check_hidden_size
from llm.drafters.learned.feature_layer import FeatureLayer, LayerCache
from llm.drafters.sampled_draft import SampledDraft
from llm.drafters.timing import Clock, quickest
from llm.fair_lock import FairLock
from llm.targets.base import Hidden, Target

GIVES_UP_BELOW = 0.3
"""A draft ends with a token that the layer rates below this."""

READS_BACK = 64
"""Positions that the layer reads of a prompt it has not followed: reading all would delay the first token."""

REMEMBERS = 512
"""Pairs that the layer attends to at most."""


class FeatureDrafting:
    """A feature layer on a target, shared by calls."""

    def __init__(
        self, name: str, layer: FeatureLayer, target: Target, clock: Clock = time.perf_counter
    ) -> None:
        """Times one drafted token. Raises `HeadsError` saying why the layer does not fit the target."""
        self.name = name
        self.layer = layer.eval()
        self._target = check_hidden_size(target, layer.config.hidden)
        cache = CallCache(target.open(), FairLock())
        layer_cache = LayerCache()
        try:
            state = np.zeros((1, layer.config.hidden), np.float32)
            self.step(state, [0], 0, layer_cache)
            self.seconds_per_token = quickest(
                lambda: cache.project(self.step(state, [0], 1, layer_cache)), clock
            )
        finally:
            cache.close()

    def open(self, cache: CallCache) -> FeatureDrafter:
        """A call's drafter. It asks the cache to keep hidden states."""
        return FeatureDrafter(self, cache)

    @torch.inference_mode()
    def step(self, states: Hidden, ids: Sequence[int], position: int, layer_cache: LayerCache) -> Hidden:
        """`FeatureLayer.forward` over hidden states [n, hidden] and the ids after them."""
        embeddings = torch.from_numpy(self._target.embed(ids))
        following: Hidden = self.layer(torch.from_numpy(states), embeddings, position, layer_cache).numpy()
        return following


class FeatureDrafter(FreeDrafter):
    """One call's side of a feature layer: it follows the target's hidden states and goes on from the last.

    Pairs that it drafted with hidden states of its own making are forgotten after each draft and read again
    with the target's, as EAGLE does.
    """

    def __init__(self, drafting: FeatureDrafting, cache: CallCache) -> None:
        self.name = drafting.name
        self.seconds_per_token = drafting.seconds_per_token
        self._drafting = drafting
        self._cache = cache
        self._layer_cache = LayerCache()
        self._start = 0  # position of the first pair in the layer's cache
        self._seen: list[int] = []  # ids whose pairs are in it
        cache.keep_hidden(READS_BACK)

    def propose(self, state: ReplyState, budget: int) -> Draft:
        states = self._follow(state.ids)
        if states is None:
            return NOTHING  # before the first pass of a reply there is nothing to go on from
        drawn = SampledDraft(state, budget, GIVES_UP_BELOW)
        read = len(self._layer_cache)
        while not drawn.over:
            token = drawn.add(self._cache.project(states)[0])
            if not drawn.over:
                position = len(state.ids) - 2 + len(drawn.ids)
                states = self._drafting.step(states, [token], position, self._layer_cache)
        self._layer_cache.cut(0, read)
        return drawn.draft(self.name)

    def _follow(self, ids: Sequence[int]) -> Hidden | None:
        """Read the pairs up to the newest token: the state [1, hidden] that it leads to, or None."""
        # The last pair is read again where nothing is new: what it led to is not kept.
        known = min(common_prefix(self._seen, ids), len(ids) - 1) - 1
        start, states = self._cache.hidden_since(max(known, 0))
        if start + len(states) != len(ids) - 1 or not len(states):
            return None
        if start != known or start < self._start:
            self._layer_cache, self._start = LayerCache(), start
        self._layer_cache.cut(0, start - self._start)
        following = self._drafting.step(states, ids[start + 1 :], start, self._layer_cache)
        if (excess := len(self._layer_cache) - REMEMBERS) > 0:
            self._layer_cache.cut(excess, len(self._layer_cache))
            self._start += excess
        self._seen = list(ids)
        return following[-1:]
