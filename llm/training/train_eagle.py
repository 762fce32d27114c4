"""Trains an EAGLE head (2401.15077) to give the next hidden state and, with it, the next token."""

from __future__ import annotations

import torch
from torch.nn.functional import cross_entropy, linear, smooth_l1_loss

from llm.checkpoints import Checkpoint
from llm.drafters.learned.feature_layer import Design, FeatureLayer, LayerCache
from llm.training.dataset import Example
from llm.training.loop import bounded

POSITIONS = 64
"""Positions of a text whose distributions one step compares: each costs two rows of the vocabulary."""

DISTRIBUTION_WEIGHT = 0.1
"""How much the distributions' cross-entropy counts beside the distance of the hidden states, as published."""

NOISE = 0.1
"""Uniform noise on the hidden states read, in standard deviations: drafted ones will not be exact either."""


class EagleObjective:
    """See `training.loop.Objective`. `head`: the target's own, float32 [vocabulary, hidden]."""

    def __init__(self, layer: FeatureLayer, head: torch.Tensor) -> None:
        self.module = layer
        self._head = head

    def loss(self, example: Example) -> torch.Tensor:
        states = example.states + NOISE * example.states.std() * (2 * torch.rand_like(example.states) - 1)
        guessed = self._following(states, example)
        wanted = example.states[example.start + 1 :]
        chosen = torch.randperm(len(wanted))[:POSITIONS]
        distribution = bounded(linear(wanted[chosen], self._head)).softmax(dim=-1)
        distance = smooth_l1_loss(guessed, wanted) / wanted.square().mean()
        return distance + DISTRIBUTION_WEIGHT * cross_entropy(
            bounded(linear(guessed[chosen], self._head)), distribution
        )

    def correct(self, example: Example) -> torch.Tensor:
        """Of the first drafted token; those after it follow from states of the layer's own making."""
        guessed = self._following(example.states, example)[:-1]
        pieces = torch.split(guessed, POSITIONS)
        guesses = torch.cat([linear(piece, self._head).argmax(dim=-1) for piece in pieces])
        return (guesses == example.ids[example.start + 2 :])[:, None]

    def _following(self, states: torch.Tensor, example: Example) -> torch.Tensor:
        """The states one position on, of every pair from the text's start."""
        made: torch.Tensor = self.module(states[:-1], example.embeddings[1:], 0, LayerCache())
        return made[example.start :]


def new_eagle(checkpoint: Checkpoint) -> FeatureLayer:
    """An untrained head for this model: it gives the hidden state that it sees, nearly as it is.

    Its layer is the model's last one with nothing led back to the stream yet: from there it learns in far
    fewer steps than from random weights.
    """
    last = checkpoint.layers[-1]
    layer = FeatureLayer(checkpoint.config, Design(attention_bias=last.query_bias is not None))
    layer.take(last)
    with torch.no_grad():
        hidden = checkpoint.config.hidden
        layer.fuse.weight.mul_(0.1)
        layer.fuse.weight[:, hidden:] += torch.eye(hidden)
        layer.attention_output.weight.zero_()
        layer.down.weight.zero_()
    return layer
