"""Any causal language model of `transformers`, unchanged, behind the target's protocol."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from llm.checkpoints import CheckpointError
from llm.targets.base import Hidden, KeysAndValues, Logits, NonFiniteLogits
from llm.targets.cache_support import (
    HiddenStateBuffer,
    blocks,
    check_copy_in,
    check_copy_out,
    check_extend,
    check_finite,
    check_truncate,
)
from llm.targets.logit_tolerance import measure_logit_tolerance
from llm.targets.torch_copies import from_bytes, to_bytes

BLOCK = 256
"""Ids of one forward at most; longer prefills are cut."""


class TransformersTarget:
    """A loaded `AutoModelForCausalLM`. Rows are not exact; `logit_tolerance` is measured."""

    exact_rows = False
    arithmetic = ""  # torch's: its version, its threads and what it finds in the processor

    def __init__(self, model: Any, name: str, *, context: int, threads: int) -> None:
        """`model`: a `PreTrainedModel` in evaluation mode."""
        self.model = model
        self.name = f"{name} (transformers)"
        self.vocabulary = int(model.config.vocab_size)
        self.context = min(context, int(getattr(model.config, "max_position_embeddings", context)))
        self.threads = threads
        # Renamed in the middle of transformers 5; the old name is deprecated there, then gone.
        parameters = inspect.signature(model.forward).parameters
        self.cache_argument = "cache" if "cache" in parameters else "past_key_values"

    @property
    def threads(self) -> int:
        return self._threads

    @threads.setter
    def threads(self, count: int) -> None:
        self._threads = count
        torch.set_num_threads(count)

    @cached_property
    def logit_tolerance(self) -> float:
        """Measured on first use: a few dozen short passes."""
        return measure_logit_tolerance(self)

    @property
    def hidden_size(self) -> int:
        return int(self.model.get_input_embeddings().weight.shape[1])

    @property
    def position_bytes(self) -> int:
        return sum(stored[..., 0, :].nbytes for stored in self.stored)

    @cached_property
    @torch.no_grad()
    def stored(self) -> list[torch.Tensor]:
        """What a cache holds of one id: each layer's keys and values [1, heads, 1, size]. Empty for one with
        a layer that keeps anything else than all of its keys and values."""
        from transformers import DynamicLayer

        cache = _new_cache(self)
        first = torch.zeros(1, 1, dtype=torch.long, device=self.model.device)
        self.model(input_ids=first, use_cache=True, **{self.cache_argument: cache})
        if any(type(layer) is not DynamicLayer for layer in cache.layers):
            return []
        return [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]

    @torch.no_grad()
    def embed(self, ids: Sequence[int]) -> Hidden:
        rows = self.model.get_input_embeddings()(torch.tensor(ids, device=self.model.device))
        embedded: Hidden = rows.float().cpu().numpy()
        return embedded

    def open(self) -> TransformersCache:
        return TransformersCache(self)


class TransformersCache(HiddenStateBuffer):
    """One call's `DynamicCache`; see `llm.targets.base.Cache`.

    A rollback removes entries, so models whose cache forgets (sliding windows, recurrent states) cannot go
    back: `truncate` raises for them rather than keep a state that no longer fits the length.
    """

    def __init__(self, target: TransformersTarget) -> None:
        super().__init__(target.hidden_size)
        self._target = target
        self._cache = _new_cache(target)
        self._length = 0
        self._closed = False

    @property
    def length(self) -> int:
        return self._length

    @property
    def memory(self) -> int:
        tensors = (
            [t for layer in self._cache.layers for t in (layer.keys, layer.values)] if self._length else []
        )
        return sum(tensor.nbytes for tensor in tensors)

    @torch.no_grad()
    def extend(self, ids: Sequence[int], rows: int) -> Logits:
        target = self._target
        check_extend(self._closed, self._length, ids, rows, target.context, target.vocabulary)
        before = self._length
        pieces = []
        for block in blocks(len(ids), BLOCK, rows, min(self._kept, len(ids))):
            output = target.model(
                input_ids=torch.tensor([list(ids[block.start : block.end])], device=target.model.device),
                use_cache=True,
                logits_to_keep=max(block.rows, 1),  # 0 would mean all of them
                output_hidden_states=block.hidden_rows > 0,
                **{target.cache_argument: self._cache},
            )
            self._length += block.end - block.start
            states = output.hidden_states[-1][0] if block.hidden_rows else torch.zeros(0, target.hidden_size)
            pieces.append((_last(output.logits[0], block.rows), _last(states, block.hidden_rows)))
        logits, hidden = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
        try:
            check_finite(logits, target.name)
        except NonFiniteLogits:
            self.truncate(before)
            raise
        self._hidden = hidden
        return logits

    @torch.no_grad()
    def project(self, states: Hidden) -> Logits:
        """By the head's matrix alone; models that scale or cap their logits after it do not do so here."""
        head = self._target.model.get_output_embeddings()
        rows = torch.from_numpy(states).to(device=head.weight.device, dtype=head.weight.dtype)
        logits: Logits = head(rows).float().cpu().numpy()
        check_finite(logits, self._target.name)
        return logits

    def truncate(self, length: int) -> None:
        check_truncate(length, self._length)
        if length == self._length:
            return
        if length == 0:
            self._cache = _new_cache(self._target)
        else:
            self._cache.crop(length - self._length)  # a negative count removes that many
            if self._cache.get_seq_length() != length:
                raise ValueError(f"{self._target.name}'s cache cannot go back to {length}")
        self._length = length

    def copy_out(self, length: int) -> KeysAndValues:
        check_copy_out(length, self._length)
        if not self._target.position_bytes:
            raise ValueError(f"{self._target.name}'s caches cannot be copied")
        layers = self._cache.layers if self._length else []
        parts = [to_bytes(t[..., :length, :]) for layer in layers for t in (layer.keys, layer.values)]
        return np.concatenate([np.zeros((length, 0), np.uint8), *parts], axis=1)

    def copy_in(self, read: KeysAndValues) -> None:
        target = self._target
        check_copy_in(self._closed, self._length, read, target.position_bytes, target.context)
        starts = np.cumsum([stored[..., 0, :].nbytes for stored in target.stored])[:-1]
        parts = np.split(read, starts, axis=1)
        tensors = [from_bytes(part, stored) for part, stored in zip(parts, target.stored, strict=True)]
        for number, (keys, values) in enumerate(zip(tensors[::2], tensors[1::2], strict=True)):
            self._cache.update(keys, values, number)
        self._length = len(read)

    def close(self) -> None:
        self._closed = True
        self._length = 0
        self._cache = None


def _last(rows: torch.Tensor, count: int) -> npt.NDArray[np.float32]:
    last: npt.NDArray[np.float32] = rows[len(rows) - count :].float().cpu().numpy()
    return last


def _new_cache(target: TransformersTarget) -> Any:
    from transformers import DynamicCache

    return DynamicCache(config=target.model.config)


def load_transformers(
    path: Path, *, context: int, threads: int, dtype: torch.dtype | str = "auto", device: str = "cpu"
) -> TransformersTarget:
    """Loads a model folder. Raises `CheckpointError` when transformers cannot."""
    from transformers import AutoModelForCausalLM

    try:
        model = AutoModelForCausalLM.from_pretrained(path, dtype=dtype, local_files_only=True)
    except Exception as error:  # whatever a model's own code runs into in a configuration that is not one
        raise CheckpointError(f"transformers cannot load {path}: {error}") from error
    return TransformersTarget(model.to(device).eval(), path.name, context=context, threads=threads)
