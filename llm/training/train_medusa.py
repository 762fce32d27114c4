"""Trains Medusa heads (Medusa-1, 2401.10774: the target stays as it is) that use the target's own head."""

from __future__ import annotations

import torch
from torch.nn.functional import cross_entropy, linear

from llm.drafters.learned.medusa import MedusaHeads
from llm.training.dataset import Example
from llm.training.loop import bounded

POSITIONS = 64
"""Positions of a text that one step learns from: each costs a row of the vocabulary a head."""

DECAY = 0.8
"""How much less each further head's loss counts, as published."""


class MedusaObjective:
    """See `training.loop.Objective`. `head`: the target's own, float32 [vocabulary, hidden]."""

    def __init__(self, heads: MedusaHeads, head: torch.Tensor) -> None:
        self.module = heads
        self._head = head

    def loss(self, example: Example) -> torch.Tensor:
        wanted = self._wanted(example)
        chosen = torch.randperm(len(wanted))[:POSITIONS]
        logits = self._logits(example, chosen)
        losses = torch.stack(
            [DECAY**k * cross_entropy(logits[:, k], wanted[chosen, k]) for k in range(wanted.shape[1])]
        )
        return losses.sum()

    def correct(self, example: Example) -> torch.Tensor:
        wanted = self._wanted(example)
        pieces = torch.split(torch.arange(len(wanted)), POSITIONS)
        guesses = [self._logits(example, piece).argmax(dim=-1) for piece in pieces]
        return torch.cat(guesses) == wanted

    def _wanted(self, example: Example) -> torch.Tensor:
        """The tokens 2, 3, ... after each position from the text's start: int64 [n, heads]."""
        count = len(self.module.heads)
        ids = example.ids[example.start :]
        n = max(0, len(ids) - count - 1)
        return torch.stack([ids[2 + k : 2 + k + n] for k in range(count)], dim=1)

    def _logits(self, example: Example, positions: torch.Tensor) -> torch.Tensor:
        states: torch.Tensor = self.module(example.states[example.start + positions])
        return bounded(linear(states, self._head))
