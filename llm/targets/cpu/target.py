"""The CPU target over the packed weights, and one call's cache on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from llm.checkpoints import Weight
from llm.targets.base import ContextFull, Hidden, KeysAndValues, Logits, NonFiniteLogits
from llm.targets.cache_support import HiddenStateBuffer, check_copy_in, check_copy_out
from llm.targets.cpu.build import ensure_built, kernel_key
from llm.targets.cpu.packed import PackedModel, open_packed


class CpuTarget:
    """Weights in the file's own 4- to 8-bit blocks, activations in int8 groups of 32, exact rows.

    Floats in the checkpoint (F16, BF16, F32) are quantised to 8 bits in groups of 32.
    """

    exact_rows = True
    logit_tolerance = 0.0

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
        self.hidden_size = model.config.hidden
        self.layers = model.config.layers
        self.context = context
        self.position_bytes = 8 * model.config.layers * model.config.key_value_heads * model.config.head_size
        # The angles of positions are numpy's; everything else is the kernel's.
        self.arithmetic = f"{kernel_key()} {path} numpy {np.__version__}"
        self.threads = threads
        self._model = _load(model, kernel, context, path)
        self._embedding = _embedding(model)

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

    def embed(self, ids: Sequence[int]) -> Hidden:
        return self._embedding.rows(np.asarray(ids, dtype=np.int64))


class CpuCache(HiddenStateBuffer):
    """One call's keys and values in float32; see `llm.targets.base.Cache`."""

    def __init__(self, target: CpuTarget, call: Any) -> None:
        super().__init__(target.hidden_size)
        self._target = target
        self._call = call

    @property
    def length(self) -> int:
        return int(self._call.length) if self._call else 0

    @property
    def memory(self) -> int:
        return int(self._call.bytes) if self._call else 0

    def extend(self, ids: Sequence[int], rows: int) -> Logits:
        call = self._open_call()
        self._check_room(self.length + len(ids))
        hidden_rows = min(self._kept, len(ids))
        logits, self._hidden = self._finite(
            call.extend(np.asarray(ids, dtype=np.int32), rows, hidden_rows, threads=self._target.threads)
        )
        return self._without_padding(logits)

    def peek(self, ids: Sequence[int], ahead: int, layers: int) -> Logits:
        call = self._open_call()
        self._check_room(self.length + ahead + len(ids))
        logits, _ = self._finite(
            call.peek(np.asarray(ids, dtype=np.int32), ahead, layers, threads=self._target.threads)
        )
        return self._without_padding(logits)

    def project(self, states: Hidden) -> Logits:
        call = self._open_call()
        return self._without_padding(self._finite(call.project(states, threads=self._target.threads)))

    def truncate(self, length: int) -> None:
        self._open_call().truncate(length)

    def copy_out(self, length: int) -> KeysAndValues:
        check_copy_out(length, self.length)
        copy: KeysAndValues = self._open_call().copy_out(length).view(np.uint8)
        return copy

    def copy_in(self, read: KeysAndValues) -> None:
        target = self._target
        check_copy_in(self._call is None, self.length, read, target.position_bytes, target.context)
        self._call.copy_in(np.ascontiguousarray(read).view(np.float32))

    def close(self) -> None:
        self._call = None

    def _open_call(self) -> Any:
        if self._call is None:
            raise ValueError("the cache is closed")
        return self._call

    def _check_room(self, length: int) -> None:
        if length > self._target.context:
            raise ContextFull(f"{length} ids do not fit into a context of {self._target.context}")

    def _finite(self, result: Any) -> Any:
        """What the kernel gave, unless it said that a logit is not finite."""
        if result is None:
            raise NonFiniteLogits(
                f"{self._target.name} gave a logit that is not finite; its weights are broken"
            )
        return result

    def _without_padding(self, logits: Logits) -> Logits:
        """Tiles are whole; the vocabulary need not be."""
        if logits.shape[1] == self._target.vocabulary:
            return logits
        return np.ascontiguousarray(logits[:, : self._target.vocabulary])


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


def _embedding(model: PackedModel) -> Weight:
    """The embedding in the file's own blocks."""
    stored = next(array for array in model.arrays if array.role == "embedding")
    return Weight(stored.format, model.config.vocabulary, model.config.hidden, stored.data)
