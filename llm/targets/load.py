"""Loads a target: the best engine that this machine and this checkpoint allow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import torch

from llm.checkpoints import UnsupportedCheckpoint, read_checkpoint
from llm.targets.base import Target
from llm.targets.cpu.build import CompilerMissing
from llm.targets.cpu.target import load_cpu_target
from llm.targets.exact_target import ExactTarget
from llm.targets.float_target import FloatTarget
from llm.targets.transformers_target import load_transformers

Backend = Literal["auto", "cpu", "torch", "transformers"]


def load_target(
    path: Path,
    *,
    threads: int,
    context: int,
    cache: Path | None = None,
    backend: Backend = "auto",
    device: str = "cpu",
    progress: Callable[[str], None] = lambda message: None,
) -> Target:
    """A target over a `.gguf` file or Hugging Face folder, `context` cut to what the model was made for.

    `backend`: `cpu` is the C++ kernel; `torch` needs no compiler, is exact on the CPU and bf16 on another
    `device`; `transformers` takes a folder of any architecture. `auto` is the first of them that can: the
    kernel on the CPU, else torch, and transformers for what neither reads.

    `cache`: folder for the built kernel and the packed weights. `progress`: told in a sentence when one of
    them is made. Raises `CheckpointError` and, for `cpu`, `CompilerMissing`.
    """

    def on_torch() -> Target:
        checkpoint = read_checkpoint(path)
        if device == "cpu":
            return ExactTarget(checkpoint, context=context, threads=threads)
        length = min(context, checkpoint.config.context)
        return FloatTarget(checkpoint, context=length, dtype=torch.bfloat16, device=device, threads=threads)

    def on_cpu() -> Target:
        return load_cpu_target(path, threads=threads, context=context, cache=cache, progress=progress)

    def on_transformers() -> Target:
        return load_transformers(path, context=context, threads=threads, device=device)

    if backend != "auto":
        return {"cpu": on_cpu, "torch": on_torch, "transformers": on_transformers}[backend]()
    try:
        if device != "cpu":
            return on_torch()
        try:
            return on_cpu()
        except CompilerMissing as error:
            progress(f"{error}; running on torch, which is slower")
            return on_torch()
    except UnsupportedCheckpoint:
        if not path.is_dir():
            raise
        return on_transformers()
