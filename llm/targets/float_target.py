"""The torch target in floats: bf16 on a GPU with a static cache, float32 as the reference for fidelity.

Matrix products of different widths may round differently, so rows are not exact (`exact_rows` is false) and
`logit_tolerance` says how far two logits were seen to move against each other; the tie guard goes by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch.nn.functional import embedding, linear, rms_norm, scaled_dot_product_attention, silu

from llm.checkpoints import Checkpoint, Weight
from llm.targets.base import Hidden, KeysAndValues, Logits, NonFiniteLogits
from llm.targets.cache_support import (
    Block,
    HiddenStateBuffer,
    blocks,
    check_copy_in,
    check_copy_out,
    check_extend,
    check_finite,
    check_truncate,
)
from llm.targets.logit_tolerance import measure_logit_tolerance
from llm.targets.rotary import angles, rotate
from llm.targets.torch_copies import from_bytes, to_bytes

BLOCK = 256
"""Rows of one pass at most; longer prefills are cut."""

COMPILED_WIDTHS = 16
"""On a GPU, passes up to this width are compiled, and recorded where torch can: launches bound them."""


class FloatTarget:
    """Weights dequantised to `dtype` on `device`; one static cache [context] a call."""

    exact_rows = False
    arithmetic = ""  # torch's: its version, its threads and what it finds in the processor

    def __init__(
        self,
        checkpoint: Checkpoint,
        *,
        context: int,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
        threads: int = 1,
    ) -> None:
        self.config = checkpoint.config
        self.name = f"{checkpoint.name} (torch {str(dtype).removeprefix('torch.')} on {device})"
        self.vocabulary = self.config.vocabulary
        self.hidden_size = self.config.hidden
        self.context = context
        self.threads = threads
        self.dtype, self.device = dtype, torch.device(device)
        heads = self.config.layers * self.config.key_value_heads
        self.position_bytes = 2 * heads * self.config.head_size * dtype.itemsize
        self.weights = _move(checkpoint, dtype, self.device)
        self.cosines, self.sines = (table.to(self.device) for table in angles(self.config, context))
        self.step = self.forward if device == "cpu" else torch.compile(self.forward, mode="reduce-overhead")

    @cached_property
    def logit_tolerance(self) -> float:
        """Measured on first use: a few dozen short passes."""
        return measure_logit_tolerance(self)

    def open(self) -> FloatCache:
        return FloatCache(self)

    def embed(self, ids: Sequence[int]) -> Hidden:
        rows: Hidden = self.weights["embedding"][torch.tensor(ids, device=self.device)].float().cpu().numpy()
        return rows

    @torch.no_grad()
    def forward(
        self,
        ids: torch.Tensor,
        positions: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        rows: int,
        hidden_rows: int,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits float32 [rows, vocabulary] and hidden states float32 [hidden_rows, hidden] of the last rows.

        Writes keys and values at `positions`.

        `keys`, `values`: [layers, key-value heads, context, head_size]. All of the context is attended under
        a mask, so that shapes, and with them what is compiled, depend on the width alone.
        """
        c = self.config
        hidden = embedding(ids, self.weights["embedding"])
        cosines, sines = self.cosines[positions], self.sines[positions]
        visible = torch.arange(keys.shape[2], device=self.device) <= positions[:, None]
        for number, layer in enumerate(self.weights["layers"]):
            normed = rms_norm(hidden, (c.hidden,), layer["attention_norm"], c.norm_epsilon)
            query = self._heads(layer, "query", normed, c.heads)
            key = self._heads(layer, "key", normed, c.key_value_heads)
            value = linear(normed, layer["value"], layer["value_bias"]).view(
                -1, c.key_value_heads, c.head_size
            )
            query = rotate(query.float(), cosines, sines).to(self.dtype)
            key = rotate(key.float(), cosines, sines).to(self.dtype)
            keys[number].index_copy_(1, positions, key.transpose(0, 1))
            values[number].index_copy_(1, positions, value.transpose(0, 1))
            attended = scaled_dot_product_attention(
                query.transpose(0, 1)[None],
                keys[number][None],
                values[number][None],
                visible,
                enable_gqa=True,
            )
            flat = attended[0].transpose(0, 1).reshape(len(ids), -1)
            hidden = hidden + linear(flat, layer["attention_output"])
            normed = rms_norm(hidden, (c.hidden,), layer["feed_forward_norm"], c.norm_epsilon)
            gated = silu(linear(normed, layer["gate"])) * linear(normed, layer["up"])
            hidden = hidden + linear(gated, layer["down"])
        wanted = max(rows, hidden_rows)
        last = rms_norm(hidden[len(ids) - wanted :], (c.hidden,), self.weights["final_norm"], c.norm_epsilon)
        return self.project(last[wanted - rows :]), last[wanted - hidden_rows :].float()

    def project(self, states: torch.Tensor) -> torch.Tensor:
        """Logits float32 [n, vocabulary] of hidden states [n, hidden]."""
        return linear(states.to(self.dtype), self.weights["head"]).float()

    def _heads(self, layer: dict[str, Any], role: str, normed: torch.Tensor, count: int) -> torch.Tensor:
        heads = linear(normed, layer[role], layer[f"{role}_bias"]).view(-1, count, self.config.head_size)
        norm = layer.get(f"{role}_norm")
        if norm is None:
            return heads
        return rms_norm(heads, (self.config.head_size,), norm, self.config.norm_epsilon)


class FloatCache(HiddenStateBuffer):
    """One call's static cache; see `llm.targets.base.Cache`."""

    def __init__(self, target: FloatTarget) -> None:
        c = target.config
        super().__init__(c.hidden)
        shape = (c.layers, c.key_value_heads, target.context, c.head_size)
        self._target = target
        self._keys = torch.zeros(shape, dtype=target.dtype, device=target.device)
        self._values = torch.zeros_like(self._keys)
        self._length = 0
        self._closed = False

    @property
    def length(self) -> int:
        return self._length

    @property
    def memory(self) -> int:
        return 2 * self._keys.nbytes

    def extend(self, ids: Sequence[int], rows: int) -> Logits:
        check_extend(self._closed, self._length, ids, rows, self._target.context, self._target.vocabulary)
        pieces = [
            self._pass(ids[block.start : block.end], block)
            for block in blocks(len(ids), BLOCK, rows, min(self._kept, len(ids)))
        ]
        logits, hidden = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
        try:
            check_finite(logits, self._target.name)
        except NonFiniteLogits:
            # The mask takes later positions out by a weight of zero, and zero times NaN is NaN.
            for stored in (self._keys, self._values):
                stored[:, :, self._length : self._length + len(ids)] = 0.0
            raise
        self._length += len(ids)
        self._hidden = hidden
        return logits

    def _pass(self, ids: Sequence[int], block: Block) -> tuple[Logits, Hidden]:
        target, position = self._target, self._length + block.start
        step = target.step if len(ids) <= COMPILED_WIDTHS else target.forward
        logits, hidden = step(
            torch.tensor(ids, device=target.device),
            torch.arange(position, position + len(ids), device=target.device),
            self._keys,
            self._values,
            block.rows,
            block.hidden_rows,
        )
        return logits.cpu().numpy(), hidden.cpu().numpy()

    @torch.no_grad()
    def project(self, states: Hidden) -> Logits:
        target = self._target
        logits: Logits = target.project(torch.from_numpy(states).to(target.device)).cpu().numpy()
        check_finite(logits, target.name)
        return logits

    def truncate(self, length: int) -> None:
        check_truncate(length, self._length)
        self._length = length

    def copy_out(self, length: int) -> KeysAndValues:
        check_copy_out(length, self._length)
        return to_bytes(torch.stack((self._keys[:, :, :length], self._values[:, :, :length])))

    def copy_in(self, read: KeysAndValues) -> None:
        target = self._target
        check_copy_in(self._closed, self._length, read, target.position_bytes, target.context)
        stored = torch.stack((self._keys[:, :, :0], self._values[:, :, :0]))
        keys, values = from_bytes(read, stored)
        self._keys[:, :, : len(read)] = keys
        self._values[:, :, : len(read)] = values
        self._length = len(read)

    def close(self) -> None:
        self._closed = True
        self._length = 0
        self._keys = self._values = torch.empty(0)


def _move(checkpoint: Checkpoint, dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
    def move(value: Any) -> torch.Tensor | None:
        if value is None:
            return None
        array = value.dequantise() if isinstance(value, Weight) else value
        return torch.tensor(array).to(device=device, dtype=dtype)

    table = move(checkpoint.embedding)
    return {
        "embedding": table,
        "head": table if checkpoint.head is checkpoint.embedding else move(checkpoint.head),
        "final_norm": move(checkpoint.final_norm),
        "layers": [
            {role: move(getattr(layer, role)) for role in layer.__slots__} for layer in checkpoint.layers
        ],
    }
