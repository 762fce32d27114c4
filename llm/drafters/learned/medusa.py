"""Medusa heads (Cai et al., 2401.10774): layers on the target's last hidden state, one a position ahead.

Head k guesses the token k + 2 after the position whose hidden state it sees, so one look at the row that gave
the newest token drafts as many tokens as there are heads, without a second model. The published architecture:
`x + silu(W x + b)`, then a matrix to the vocabulary.

Heads may also do without matrices of their own and use the target's head, which holds the same knowledge: on
a CPU, where a draft's cost is the weights that it reads, that is what makes them worth asking.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn.functional import silu

from llm.cache import CallCache
from llm.drafters.base import LONGEST_DRAFT, NOTHING, Draft, FreeDrafter, ReplyState
from llm.drafters.learned.compatibility import HeadsError, check_hidden_size
from llm.drafters.sampled_draft import SampledDraft
from llm.drafters.timing import Clock, quickest
from llm.fair_lock import FairLock
from llm.targets.base import Logits, Target

GIVES_UP_BELOW = 0.3
"""A draft ends with a token that its head rates below this: those after it are seldom accepted."""


NEVER = -1e9
"""The logit of a token that a head does not know."""


class Head(nn.Module):
    """One head: hidden states [..., hidden] to those that a matrix to the vocabulary reads."""

    def __init__(self, hidden: int, vocabulary: int | None) -> None:
        super().__init__()
        self.block = nn.Linear(hidden, hidden)
        self.output = None if vocabulary is None else nn.Linear(hidden, vocabulary, bias=False)
        nn.init.zeros_(self.block.weight)  # as published: a head begins with the plain hidden state
        nn.init.zeros_(self.block.bias)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden + silu(self.block(hidden))


class MedusaHeads(nn.Module):
    """`count` heads over hidden states of size `hidden`; `vocabulary` None: they use the target's head."""

    def __init__(self, count: int, hidden: int, vocabulary: int | None = None) -> None:
        super().__init__()
        self.hidden, self.vocabulary = hidden, vocabulary
        self.heads = [Head(hidden, vocabulary) for _ in range(count)]
        for k, head in enumerate(self.heads):
            self.add_module(str(k), head)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """[..., hidden] to [..., heads, hidden]: what each head's matrix to the vocabulary reads."""
        return torch.stack([head(hidden) for head in self.heads], dim=-2)

    def own_logits(self, states: torch.Tensor) -> torch.Tensor:
        """`forward`'s result through the heads' own matrices: [..., heads, vocabulary]."""
        outputs = [head.output(states[..., k, :]) for k, head in enumerate(self.heads) if head.output]
        return torch.stack(outputs, dim=-2)

    def save(self, path: Path) -> None:
        """As safetensors, named as published: `k.0.linear.weight`, `k.0.linear.bias`, `k.1.weight`."""
        tensors = {}
        for k, head in enumerate(self.heads):
            tensors[f"{k}.0.linear.weight"] = head.block.weight.detach().contiguous()
            tensors[f"{k}.0.linear.bias"] = head.block.bias.detach().contiguous()
            if head.output is not None:
                tensors[f"{k}.1.weight"] = head.output.weight.detach().contiguous()
        save_file(tensors, path)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read safetensors or the publishers' `medusa_lm_head.pt`. Raises `HeadsError`."""
        try:
            tensors: dict[str, Any] = (
                load_file(path)
                if path.suffix == ".safetensors"
                else torch.load(path, map_location="cpu", weights_only=True)
            )
            count = 1 + max(int(name.split(".")[0]) for name in tensors)
            hidden = tensors["0.0.linear.weight"].shape[1]
            made = cls(count, hidden, tensors["0.1.weight"].shape[0] if "0.1.weight" in tensors else None)
            for k, head in enumerate(made.heads):
                head.block.load_state_dict(
                    {"weight": tensors[f"{k}.0.linear.weight"], "bias": tensors[f"{k}.0.linear.bias"]}
                )
                if head.output is not None:
                    head.output.load_state_dict({"weight": tensors[f"{k}.1.weight"]})
        except Exception as error:
            raise HeadsError(f"{path.name} holds no Medusa heads with one block each: {error}") from error
        return made.float().eval()


class MedusaDrafting:
    """Medusa heads on a target, shared by calls."""

    def __init__(self, heads: MedusaHeads, target: Target, clock: Clock = time.perf_counter) -> None:
        """Times a look through the heads. Raises `HeadsError` saying why they do not fit the target."""
        if heads.vocabulary is not None and heads.vocabulary > target.vocabulary:
            raise HeadsError(
                f"the heads draft from {heads.vocabulary} tokens, {target.name} knows {target.vocabulary}"
            )
        check_hidden_size(target, heads.hidden)
        self.heads = heads
        self._vocabulary = target.vocabulary
        cache = CallCache(target.open(), FairLock())
        try:
            state = np.zeros(heads.hidden, np.float32)
            seconds = quickest(lambda: self.rows(state, cache), clock)
        finally:
            cache.close()
        self.seconds_per_token = seconds / len(heads.heads)

    def open(self, cache: CallCache) -> MedusaDrafter:
        """A call's drafter. It asks the cache to keep hidden states."""
        return MedusaDrafter(self, cache)

    @torch.inference_mode()
    def rows(self, hidden: np.ndarray[Any, np.dtype[np.float32]], cache: CallCache) -> Logits:
        """Each head's logits float32 [heads, vocabulary] from one hidden state [hidden]."""
        states = self.heads(torch.from_numpy(hidden))
        if self.heads.vocabulary is None:
            return cache.project(states.numpy())
        logits: Logits = self.heads.own_logits(states).numpy()
        unknown = self._vocabulary - logits.shape[1]  # the target's may be padded further
        return np.pad(logits, ((0, 0), (0, unknown)), constant_values=NEVER)


class MedusaDrafter(FreeDrafter):
    """Drafts a token from each head, from the hidden state that gave the newest token."""

    name = "medusa"

    def __init__(self, drafting: MedusaDrafting, cache: CallCache) -> None:
        self._drafting = drafting
        self._cache = cache
        self.seconds_per_token = drafting.seconds_per_token
        cache.keep_hidden(LONGEST_DRAFT + 1)  # the newest token came from one of the last pass's rows

    def propose(self, state: ReplyState, budget: int) -> Draft:
        newest = len(state.ids) - 2
        start, states = self._cache.hidden_since(newest)
        if start != newest or len(states) == 0:
            return NOTHING  # before the first pass of a reply there is none
        drawn = SampledDraft(state, budget, GIVES_UP_BELOW)
        for row in self._drafting.rows(states[0], self._cache):
            if drawn.over:
                break
            drawn.add(row)
        return drawn.draft(self.name)
