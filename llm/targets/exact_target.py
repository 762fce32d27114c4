"""The torch target for machines without a C++ compiler: slower, and exact rows all the same.

A matrix product of floats passes differently at different widths. Integers do not: while every partial sum
stays below 2**24, float32 holds it exactly, and the order of the additions, which is what changes with the
width, no longer matters. So weights and activations are quantised to integers along blocks of 128 inputs,
multiplied as float32 by whatever library torch has, and scaled and added block by block, element by element:

    128 inputs * 127 (weights, 8 bits) * 1,023 (activations, 11 bits)  <  2**24

Attention is computed a row at a time over that row's own length, so its shapes do not depend on the block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.nn.functional import pad, silu

from llm.checkpoints import Checkpoint, LayerWeights, UnsupportedCheckpoint, Weight
from llm.checkpoints.description import MATRICES, VECTORS
from llm.targets.base import Hidden, KeysAndValues, Logits
from llm.targets.cache_support import (
    HiddenStateBuffer,
    blocks,
    check_copy_in,
    check_copy_out,
    check_extend,
    check_finite,
    check_truncate,
)
from llm.targets.rotary import angles, rotate
from llm.targets.torch_copies import from_bytes, to_bytes

BLOCK = 128
WEIGHT_STEPS = 127
ACTIVATION_STEPS = 1023
PART = 4096
"""Outputs multiplied at a time."""

ROWS = 64
"""Rows of one pass at most; longer prefills are cut."""

CHUNK = 256
"""Positions by which a cache grows."""


class IntegerMatrix:
    """A weight as integers with one scale for each output and block of 128 inputs."""

    def __init__(self, weight: Weight) -> None:
        """Raises `UnsupportedCheckpoint` unless the inputs fill whole groups of 32."""
        if weight.inputs % 32:
            raise UnsupportedCheckpoint(f"{weight.inputs} inputs are not a multiple of 32")
        self._parts = [
            _integer_part(torch.from_numpy(weight.rows(slice(first, first + PART))))
            for first in range(0, weight.outputs, PART)
        ]

    def multiply(self, quants: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        """float32 [rows, outputs] from `quantise`'s result; a row's bits depend on that row alone."""
        return torch.cat([_multiply_part(*part, quants, scales) for part in self._parts], dim=1)


def _integer_part(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows [outputs, inputs] as int8 [blocks, 128, outputs], and their scales [blocks, 1, outputs]."""
    blocks = pad(values, (0, -values.shape[1] % BLOCK)).view(len(values), -1, BLOCK)
    scale = blocks.abs().amax(dim=-1, keepdim=True).clamp_min(1e-20) / WEIGHT_STEPS
    integers = (blocks / scale).round_().to(torch.int8)
    return integers.permute(1, 2, 0).contiguous(), scale.permute(1, 2, 0).contiguous()


def _multiply_part(
    integers: torch.Tensor, weight_scales: torch.Tensor, quants: torch.Tensor, scales: torch.Tensor
) -> torch.Tensor:
    total = torch.zeros(quants.shape[1], integers.shape[2])
    widened = torch.empty(integers.shape[1:])  # one block as floats, small enough to stay in the cache
    for block in range(len(integers)):
        product = torch.mm(quants[block], widened.copy_(integers[block]))
        # Products and sums stay apart: a fused one passes once where it is vectorised, twice where not.
        total += product.mul_(scales[block]).mul_(weight_scales[block])
    return total


def quantise(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows [n, inputs] as whole numbers in float32 [blocks, n, 128], and their scales [blocks, n, 1]."""
    blocks = pad(rows, (0, -rows.shape[1] % BLOCK)).view(len(rows), -1, BLOCK).transpose(0, 1)
    scale = blocks.abs().amax(dim=-1, keepdim=True).clamp_min(1e-20) / ACTIVATION_STEPS
    return (blocks / scale).round_(), scale


class ExactTarget:
    """See the module; on the CPU."""

    exact_rows = True
    logit_tolerance = 0.0
    arithmetic = ""  # torch's: its version, its threads and what it finds in the processor

    def __init__(self, checkpoint: Checkpoint, *, context: int, threads: int) -> None:
        """Sets torch's threads: results may depend on their number, so it is fixed while the target lives."""
        self.config = checkpoint.config
        self.name = f"{checkpoint.name} (torch, exact)"
        self.vocabulary = self.config.vocabulary
        self.context = min(context, self.config.context)
        self.hidden_size = self.config.hidden
        self.position_bytes = 8 * self.config.layers * self.config.key_value_heads * self.config.head_size
        self._threads = threads
        torch.set_num_threads(threads)
        self.embedding = checkpoint.embedding
        self.layers = self.config.layers
        self.layer_weights = [_integers(layer) for layer in checkpoint.layers]
        self.final_norm = torch.from_numpy(checkpoint.final_norm.copy())
        self.head = IntegerMatrix(checkpoint.head)
        self.cosines, self.sines = angles(self.config, self.context)

    @property
    def threads(self) -> int:
        return self._threads

    @threads.setter
    def threads(self, count: int) -> None:
        """Ignored but for the first: changing it in mid-call could change bits."""

    def open(self) -> ExactCache:
        return ExactCache(self)

    def embed(self, ids: Sequence[int]) -> Hidden:
        return self.embedding.rows(np.asarray(ids, dtype=np.int64))


class ExactCache(HiddenStateBuffer):
    """One call's keys and values, float32, grown 256 positions at a time; see `llm.targets.base.Cache`."""

    def __init__(self, target: ExactTarget) -> None:
        c = target.config
        super().__init__(c.hidden)
        self._target = target
        self._store = torch.zeros(2, c.layers, c.key_value_heads, 0, c.head_size)
        self._length = 0
        self._ahead = 0
        self._closed = False

    @property
    def length(self) -> int:
        return self._length

    @property
    def memory(self) -> int:
        return self._store.nbytes

    @torch.no_grad()
    def extend(self, ids: Sequence[int], rows: int) -> Logits:
        target = self._target
        check_extend(self._closed, self._length, ids, rows, target.context, target.vocabulary)
        logits, hidden = self._read(ids, self._length, rows, min(self._kept, len(ids)), target.layers)
        self._length += len(ids)
        self._ahead = 0
        self._hidden = hidden
        return logits

    @torch.no_grad()
    def peek(self, ids: Sequence[int], ahead: int, layers: int) -> Logits:
        target = self._target
        if not 0 <= ahead <= self._ahead or not 1 <= layers <= target.layers:
            raise ValueError(f"cannot peek {ahead} positions ahead through {layers} layers")
        start = self._length + ahead
        check_extend(self._closed, start, ids, 1, target.context, target.vocabulary)
        self._ahead = ahead
        logits, _ = self._read(ids, start, 1, 0, layers)
        self._ahead = ahead + len(ids)
        return logits

    @torch.no_grad()
    def project(self, states: Hidden) -> Logits:
        logits: Logits = self._target.head.multiply(*quantise(torch.from_numpy(states))).numpy()
        check_finite(logits, self._target.name)
        return logits

    def truncate(self, length: int) -> None:
        check_truncate(length, self._length)
        self._length = length
        self._ahead = 0

    def copy_out(self, length: int) -> KeysAndValues:
        check_copy_out(length, self._length)
        return to_bytes(self._store[:, :, :, :length])

    def copy_in(self, read: KeysAndValues) -> None:
        target = self._target
        check_copy_in(self._closed, self._length, read, target.position_bytes, target.context)
        self._reserve(len(read))
        self._store[:, :, :, : len(read)] = from_bytes(read, self._store)
        self._length = len(read)
        self._ahead = 0

    def close(self) -> None:
        self._closed = True
        self._length = 0
        self._store = torch.zeros(0)

    def _reserve(self, positions: int) -> None:
        missing = -(-positions // CHUNK) * CHUNK - self._store.shape[3]
        if missing > 0:
            self._store = pad(self._store, (0, 0, 0, missing))

    def _read(
        self, ids: Sequence[int], position: int, rows: int, hidden_rows: int, layers: int
    ) -> tuple[Logits, Hidden]:
        """The first `layers` over ids from `position` on: last rows of logits and of hidden states."""
        self._reserve(position + len(ids))
        target, logits, states = self._target, [], []
        for block in blocks(len(ids), ROWS, rows, hidden_rows):
            hidden = self._layers(ids[block.start : block.end], position + block.start, layers)
            wanted = max(block.rows, block.hidden_rows)
            last = _norm(hidden[len(hidden) - wanted :], target.final_norm, target.config.norm_epsilon)
            states.append(last[wanted - block.hidden_rows :].numpy())
            if block.rows:
                logits.append(self.project(last[wanted - block.rows :].numpy()))
        empty = np.zeros((0, target.vocabulary), np.float32)
        return np.concatenate([empty, *logits]), np.concatenate(states)

    def _layers(self, ids: Sequence[int], position: int, layers: int) -> torch.Tensor:
        target = self._target
        hidden = torch.from_numpy(target.embed(ids))
        for number, layer in enumerate(target.layer_weights[:layers]):
            normed = quantise(_norm(hidden, layer["attention_norm"], target.config.norm_epsilon))
            query = self._project(normed, layer, number, position)
            attended = torch.stack(
                [self._attend(number, query[row], position + row + 1) for row in range(len(ids))]
            )
            hidden = hidden + layer["attention_output"].multiply(*quantise(attended))
            normed = quantise(_norm(hidden, layer["feed_forward_norm"], target.config.norm_epsilon))
            gated = silu(layer["gate"].multiply(*normed)) * layer["up"].multiply(*normed)
            hidden = hidden + layer["down"].multiply(*quantise(gated))
        return hidden

    def _project(
        self, normed: tuple[torch.Tensor, torch.Tensor], layer: dict[str, Any], number: int, position: int
    ) -> torch.Tensor:
        """Stores keys and values; returns the queries [rows, heads, head_size]."""
        target, c = self._target, self._target.config
        heads: dict[str, torch.Tensor] = {}
        for role in ("query", "key", "value"):
            flat = layer[role].multiply(*normed)
            if layer[f"{role}_bias"] is not None:
                flat = flat + layer[f"{role}_bias"]
            heads[role] = flat.view(len(flat), -1, c.head_size)
        rows = slice(position, position + len(heads["query"]))
        for role in ("query", "key"):
            if layer[f"{role}_norm"] is not None:
                heads[role] = _norm(heads[role], layer[f"{role}_norm"], c.norm_epsilon)
            heads[role] = rotate(heads[role], target.cosines[rows], target.sines[rows])
        self._store[0, number, :, rows] = heads["key"].transpose(0, 1)
        self._store[1, number, :, rows] = heads["value"].transpose(0, 1)
        return heads["query"]

    def _attend(self, number: int, query: torch.Tensor, length: int) -> torch.Tensor:
        """One row over its own length: [heads * head_size]."""
        c = self._target.config
        keys, values = self._store[:, number, :, :length]
        grouped = query.reshape(c.key_value_heads, -1, c.head_size).contiguous()
        scores = torch.matmul(grouped, keys.transpose(1, 2)) * c.head_size**-0.5
        return torch.matmul(scores.softmax(dim=-1), values).reshape(-1)


def _norm(rows: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
    return rows * torch.rsqrt(rows.pow(2).mean(dim=-1, keepdim=True) + epsilon) * weight


def _integers(layer: LayerWeights) -> dict[str, Any]:
    vectors = {role: getattr(layer, role) for role in VECTORS}
    return {role: IntegerMatrix(getattr(layer, role)) for role in MATRICES} | {
        role: None if vector is None else torch.from_numpy(vector.copy()) for role, vector in vectors.items()
    }
