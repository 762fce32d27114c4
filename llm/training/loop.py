"""The training loop that all kinds of heads share, and how well they guess on texts that were held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import nn

from llm.drafters.learned.compatibility import HeadsError
from llm.training.dataset import Example

HELD_OUT = 8
"""One text in so many is kept out of the training to be judged by."""

CLIP = 1.0

DEEPEST = 60.0
"""e^-60 is 1e-26: far below any probability that matters, far above the smallest normal float32."""


class Objective(Protocol):
    """Heads, the loss that trains them, and what counts as a right guess."""

    @property
    def module(self) -> nn.Module: ...

    def loss(self, example: Example) -> torch.Tensor:
        """A scalar to be made smaller."""
        ...

    def correct(self, example: Example) -> torch.Tensor:
        """Where the heads' best guess is the text's own token: bool [positions, tokens ahead]."""
        ...


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """How a training went. `before` and `after`: share of right guesses on held-out texts, a number for each
    token ahead. `first_loss` and `last_loss`: means over a tenth of the steps.
    """

    steps: int
    texts: int
    tokens: int
    first_loss: float
    last_loss: float
    before: tuple[float, ...]
    after: tuple[float, ...]


def train(
    objective: Objective,
    examples: Sequence[Example],
    *,
    steps: int,
    learning_rate: float,
    seed: int = 0,
    progress: Callable[[int, float], None] = lambda step, loss: None,
) -> TrainingReport:
    """AdamW, one text a step, in a new random order each time round, the rate falling to zero.

    `progress` is told each step's loss. The same seed gives the same heads. Raises `HeadsError` for fewer
    than two texts, and where the loss is no number any more.
    """
    if len(examples) < 2:
        raise HeadsError("there is too little to train on: give at least two texts of a sentence or more")
    torch.manual_seed(seed)
    held_out = examples[::HELD_OUT] if len(examples) >= HELD_OUT else examples[:1]
    kept = [example for example in examples if not any(example is other for other in held_out)]
    before = accuracy(objective, held_out)
    optimizer = torch.optim.AdamW(objective.module.parameters(), lr=learning_rate, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, total_iters=steps)
    objective.module.train()
    losses: list[float] = []
    order: list[int] = []
    for step in range(steps):
        order = order or torch.randperm(len(kept)).tolist()
        loss = objective.loss(kept[order.pop()])
        if not torch.isfinite(loss):
            raise HeadsError(f"the loss is no number after {step} steps: train at a lower learning rate")
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(objective.module.parameters(), CLIP)
        optimizer.step()
        schedule.step()
        losses.append(float(loss.detach()))
        progress(step + 1, losses[-1])
    objective.module.eval()
    part = max(1, steps // 10)
    return TrainingReport(
        steps=steps,
        texts=len(examples),
        tokens=sum(len(example.ids) for example in examples),
        first_loss=sum(losses[:part]) / part,
        last_loss=sum(losses[-part:]) / part,
        before=before,
        after=accuracy(objective, held_out),
    )


def bounded(logits: torch.Tensor) -> torch.Tensor:
    """Logits [..., vocabulary] no further below the best than what a probability in float32 can tell.

    Beyond that the probabilities are denormal numbers, on which the products of the way back take ten times
    as long, and which change nothing that is learned.
    """
    return logits.clamp(min=logits.detach().amax(dim=-1, keepdim=True) - DEEPEST)


@torch.inference_mode()
def accuracy(objective: Objective, examples: Sequence[Example]) -> tuple[float, ...]:
    """How often the heads' best guess is the text's own token, for each token ahead."""
    correct = torch.cat([objective.correct(example) for example in examples])
    return tuple(correct.float().mean(dim=0).tolist())
