"""The CPU target over the packed weights, and one call's cache on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from llm.targets.base import ContextFull, Logits, NonFiniteLogits
from llm.targets.cpu.build import ensure_built
from llm.targets.cpu.packed import PackedModel, open_packed


class CpuTarget:
    """Weights in the file's own 4- to 8-bit blocks, activations in int8 groups of 32, exact rows.

    Floats in the checkpoint (F16, BF16, F32) are quantised to 8 bits in groups of 32.
    """

    exact_rows = True
    margin = 0.0

    def __init__(
        self, model: PackedModel, kernel: ModuleType, *, threads: int, context: int, path: str
    ) -> None:
        """`path`: instruction set, one of `kernel.supported_paths()`.

        Raises `ValueError` for settings out of range.
        """
        if context < 1 or context > model.config.context:
            raise ValueError(f"context must be 1 to {model.config.context} for {model.name}, not {context}")
        self.name = f"{model.name} ({path})"
        self.vocabulary = model.config.vocabulary
        self.context = context
        self.threads = threads
        self._model = _load(model, kernel, context, path)

    @property
    def threads(self) -> int:
        return self._threads

    @threads.setter
    def threads(self, count: int) -> None:
        if count < 1:
            raise ValueError(f"threads must be at least 1, not {count}")
        self._threads = count

    def open(self) -> CpuCache:
        return CpuCache(self, self._model.open())


class CpuCache:
    """One call's keys and values in float32; see `llm.targets.base.Cache`."""

    def __init__(self, target: CpuTarget, call: Any) -> None:
        self._target = target
        self._call = call

    @property
    def length(self) -> int:
        return int(self._call.length) if self._call else 0

    @property
    def memory(self) -> int:
        return int(self._call.bytes) if self._call else 0

    def extend(self, ids: Sequence[int], rows: int) -> Logits:
        if self._call is None:
            raise ValueError("the cache is closed")
        if self.length + len(ids) > self._target.context:
            raise ContextFull(
                f"{len(ids)} ids after {self.length} do not fit into a context of {self._target.context}"
            )
        logits: Logits | None = self._call.extend(
            np.asarray(ids, dtype=np.int32), rows, threads=self._target.threads
        )
        if logits is None:
            raise NonFiniteLogits(
                f"{self._target.name} gave a logit that is not finite; its weights are broken"
            )
        if logits.shape[1] != self._target.vocabulary:  # tiles are whole; the vocabulary need not be
            return np.ascontiguousarray(logits[:, : self._target.vocabulary])
        return logits

    def truncate(self, length: int) -> None:
        if self._call is None:
            raise ValueError("the cache is closed")
        self._call.truncate(length)

    def close(self) -> None:
        self._call = None


def load_cpu_target(
    path: Path,
    *,
    threads: int,
    context: int,
    cache: Path | None = None,
    instructions: str | None = None,
    progress: Callable[[str], None] = lambda message: None,
) -> CpuTarget:
    """Builds the kernel and packs the checkpoint if that was not done yet, and maps it.

    `cache`: folder for both; by default the kernel goes to the user's cache and the packed file beside the
    checkpoint. `instructions`: one of the kernel's paths, default the best this processor has. Raises
    `CheckpointError`, `UnsupportedCheckpoint`, or `CompilerMissing` where the kernel cannot be built.
    """
    kernel = ensure_built(cache=cache, progress=progress)
    model = open_packed(path, kernel, folder=cache, progress=progress)
    best: str = kernel.supported_paths()[0]
    return CpuTarget(
        model,
        kernel,
        threads=threads,
        context=min(context, model.config.context),
        path=instructions or best,
    )


def _load(model: PackedModel, kernel: ModuleType, context: int, path: str) -> Any:
    config = model.config
    shape = kernel.Shape(
        layers=config.layers,
        hidden=config.hidden,
        feed_forward=config.feed_forward,
        heads=config.heads,
        key_value_heads=config.key_value_heads,
        head_size=config.head_size,
        vocabulary=config.vocabulary,
        context=context,
        norm_epsilon=config.norm_epsilon,
    )
    loaded = kernel.Model(shape, path)
    for array in model.arrays:
        if array.role == "embedding":
            loaded.set_embedding(array.format, array.data)
        elif array.format:
            loaded.set_matrix(array.layer, array.role, array.format, array.data)
        else:
            loaded.set_vector(array.layer, array.role, array.data)
    angles = np.arange(context, dtype=np.float64)[:, None] * np.asarray(config.inverse_frequencies)
    loaded.set_angles(np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32))
    return loaded
