"""Any causal language model of `transformers`, unchanged, behind the target's protocol."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from llm.checkpoints import CheckpointError
from llm.targets.base import Logits, NonFiniteLogits
from llm.targets.border import check_extend, check_truncate
from llm.targets.margin import calibrate_margin

BLOCK = 256
"""Ids of one forward at most; longer prefills are cut."""


class TransformersTarget:
    """A loaded `AutoModelForCausalLM`. Rows are not exact; `margin` is measured."""

    exact_rows = False

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
    def margin(self) -> float:
        """Measured on first use: a few dozen short passes."""
        return calibrate_margin(self)

    def open(self) -> TransformersCache:
        return TransformersCache(self)


class TransformersCache:
    """One call's `DynamicCache`; see `llm.targets.base.Cache`.

    A rollback removes entries, so models whose cache forgets (sliding windows, recurrent states) cannot go
    back: `truncate` raises for them rather than keep a state that no longer fits the length.
    """

    def __init__(self, target: TransformersTarget) -> None:
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
        pieces = [np.zeros((0, target.vocabulary), np.float32)]
        for start in range(0, len(ids), BLOCK):
            block = ids[start : start + BLOCK]
            wanted = min(len(block), max(0, rows - (len(ids) - start - len(block))))
            output = target.model(
                input_ids=torch.tensor([list(block)], device=target.model.device),
                use_cache=True,
                logits_to_keep=max(wanted, 1),  # 0 would mean all of them
                **{target.cache_argument: self._cache},
            )
            self._length += len(block)
            if wanted:
                pieces.append(output.logits[0, -wanted:].float().cpu().numpy())
        logits: Logits = np.concatenate(pieces)
        if not np.isfinite(logits).all():
            self.truncate(before)
            raise NonFiniteLogits(f"{target.name} gave a logit that is not finite")
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

    def close(self) -> None:
        self._closed = True
        self._length = 0
        self._cache = None


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
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"transformers cannot load {path}: {error}") from error
    return TransformersTarget(model.to(device).eval(), path.name, context=context, threads=threads)
