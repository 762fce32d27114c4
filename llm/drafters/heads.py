"""Medusa heads (Cai et al., 2401.10774): layers on the target's last hidden state, one a position ahead.

Head k guesses the token k + 2 after the position whose hidden state it sees, so one look at the row that gave
the newest token drafts as many tokens as there are heads, without a second model. The published architecture:
`x + silu(W x + b)`, then a matrix to the vocabulary.

They need a target whose cache hands out hidden states (`HiddenCache`); the loader reads published files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn.functional import cross_entropy, silu

from llm.cache import CallCache
from llm.drafters.base import NOTHING, Draft, FreeDrafter, ReplyState
from llm.targets.base import Target

Hidden = npt.NDArray[np.float32]
GIVES_UP_BELOW = 0.3
"""A draft ends before a token that its head rates below this."""


@runtime_checkable
class HiddenCache(Protocol):
    """What a target's cache offers beyond `llm.targets.base.Cache` so that heads can draft from it."""

    def hidden(self, rows: int) -> Hidden:
        """The last layer's normed output at the last `rows` positions of the last `extend`.

        float32 [rows, hidden].
        """
        ...


class HeadsError(ValueError):
    """Heads that cannot be read, or that do not fit the target. The message says what is wrong."""


class Head(nn.Module):
    """One head: [..., hidden] to logits [..., vocabulary]."""

    def __init__(self, hidden: int, vocabulary: int) -> None:
        super().__init__()
        self.block = nn.Linear(hidden, hidden)
        self.output = nn.Linear(hidden, vocabulary, bias=False)
        nn.init.zeros_(self.block.weight)  # as published: a head begins with the plain hidden state
        nn.init.zeros_(self.block.bias)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.output(hidden + silu(self.block(hidden)))
        return logits


class MedusaHeads(nn.Module):
    """`count` heads over hidden states of size `hidden`."""

    def __init__(self, count: int, hidden: int, vocabulary: int) -> None:
        super().__init__()
        self.hidden, self.vocabulary = hidden, vocabulary
        self.heads = [Head(hidden, vocabulary) for _ in range(count)]
        for k, head in enumerate(self.heads):
            self.add_module(str(k), head)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """[..., hidden] to logits [..., heads, vocabulary]."""
        return torch.stack([head(hidden) for head in self.heads], dim=-2)

    def save(self, path: Path) -> None:
        """As safetensors, named as published: `k.0.linear.weight`, `k.0.linear.bias`, `k.1.weight`."""
        tensors = {}
        for k, head in enumerate(self.heads):
            tensors[f"{k}.0.linear.weight"] = head.block.weight.detach().contiguous()
            tensors[f"{k}.0.linear.bias"] = head.block.bias.detach().contiguous()
            tensors[f"{k}.1.weight"] = head.output.weight.detach().contiguous()
        save_file(tensors, path)

    @classmethod
    def load(cls, path: Path) -> MedusaHeads:
        """Read safetensors or the publishers' `medusa_lm_head.pt`. Raises `HeadsError`."""
        try:
            tensors: dict[str, Any] = (
                load_file(path)
                if path.suffix == ".safetensors"
                else torch.load(path, map_location="cpu", weights_only=True)
            )
            count = 1 + max(int(name.split(".")[0]) for name in tensors)
            vocabulary, hidden = tensors["0.1.weight"].shape
            made = cls(count, hidden, vocabulary)
            for k, head in enumerate(made.heads):
                head.block.load_state_dict(
                    {"weight": tensors[f"{k}.0.linear.weight"], "bias": tensors[f"{k}.0.linear.bias"]}
                )
                head.output.load_state_dict({"weight": tensors[f"{k}.1.weight"]})
        except Exception as error:
            raise HeadsError(f"{path.name} holds no Medusa heads with one block each: {error}") from error
        return made.eval()


class Medusa(FreeDrafter):
    """Drafts each head's best token from the hidden state that gave the newest token."""

    name = "medusa"

    def __init__(self, heads: MedusaHeads, cache: CallCache, seconds_per_token: float) -> None:
        self._heads = heads
        self._cache = cache
        self.seconds_per_token = seconds_per_token

    @torch.inference_mode()
    def propose(self, state: ReplyState, budget: int) -> Draft:
        hidden = self._cache.hidden_at(len(state.ids) - 2)
        if hidden is None:
            return NOTHING  # before the first pass of a reply there is none
        chances = self._heads(torch.from_numpy(hidden)).softmax(dim=-1)
        best, ids = chances.max(dim=-1)
        unsure = next((k for k, chance in enumerate(best.tolist()) if chance < GIVES_UP_BELOW), len(best))
        return Draft(tuple(ids.tolist()[: min(unsure, budget)]), self.name, 0, 0.6)


def seconds_per_token(heads: MedusaHeads, clock: Callable[[], float] = time.perf_counter) -> float:
    """What drafting costs, spread over the heads; the quickest of a few."""
    hidden = torch.zeros(heads.hidden)
    quickest = float("inf")
    with torch.inference_mode():
        for _ in range(5):
            before = clock()
            heads(hidden)
            quickest = min(quickest, clock() - before)
    return max(quickest / len(heads.heads), 1e-9)


def heads_for(target: Target, heads: MedusaHeads) -> MedusaHeads:
    """The heads, if they fit the target. Raises `HeadsError` saying why they do not."""
    if heads.vocabulary > target.vocabulary:
        raise HeadsError(
            f"the heads draft from {heads.vocabulary} tokens, {target.name} knows {target.vocabulary}"
        )
    cache = target.open()
    try:
        if not isinstance(cache, HiddenCache):
            raise HeadsError(f"{target.name} does not hand out hidden states, which heads need")
        cache.extend([0], 1)
        size = cache.hidden(1).shape[1]
    finally:
        cache.close()
    if size != heads.hidden:
        raise HeadsError(f"the heads see {heads.hidden} numbers, {target.name}'s hidden state has {size}")
    return heads


def hidden_states(target: Target, texts: Iterable[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Hidden states [n, hidden] of id sequences and, for each, the ids that follow: the food of training.

    Raises `HeadsError` where the target does not hand out hidden states.
    """
    states, following = [], []
    for ids in texts:
        cache = target.open()
        try:
            if not isinstance(cache, HiddenCache):
                raise HeadsError(f"{target.name} does not hand out hidden states, which heads need")
            cache.extend(ids, len(ids))
            states.append(torch.from_numpy(cache.hidden(len(ids))))
        finally:
            cache.close()
        following.append(torch.tensor(ids))
    if not states:
        raise HeadsError("there is nothing to train on: give at least one text")
    return torch.cat(states), torch.cat(following)


def train_heads(
    target: Target,
    texts: Sequence[Sequence[int]],
    *,
    count: int = 4,
    epochs: int = 20,
    learning_rate: float = 1e-3,
    batch: int = 256,
    seed: int = 0,
    progress: Callable[[int, float], None] = lambda epoch, loss: None,
) -> MedusaHeads:
    """Train heads on id sequences: a corpus, or better the target's own replies.

    The target stays as it is (Medusa-1). `progress` is told each epoch's mean loss. The same seed gives the
    same heads. Raises `HeadsError`.
    """
    torch.manual_seed(seed)
    examples = [_examples(*hidden_states(target, [ids]), count) for ids in texts if len(ids) > count + 1]
    if not examples:
        raise HeadsError(f"no text is longer than {count + 1} tokens: nothing to look ahead to")
    hidden = torch.cat([h for h, _ in examples])
    wanted = torch.cat([w for _, w in examples])
    heads = MedusaHeads(count, hidden.shape[1], target.vocabulary)
    optimizer = torch.optim.AdamW(heads.parameters(), lr=learning_rate)
    for epoch in range(epochs):
        losses = []
        order = torch.randperm(len(hidden))
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            logits = heads(hidden[chosen])
            loss = cross_entropy(logits.flatten(0, 1), wanted[chosen].flatten())
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
            losses.append(float(loss.detach()))
        progress(epoch, sum(losses) / len(losses))
    return heads.eval()


def _examples(hidden: torch.Tensor, ids: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Each position's hidden state with the tokens 2, 3, ... after it: [n, hidden], [n, count]."""
    n = len(ids) - count - 1
    wanted = torch.stack([ids[2 + k : 2 + k + n] for k in range(count)], dim=1)
    return hidden[:n], wanted
