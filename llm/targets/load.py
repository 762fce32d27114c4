"""Loads a target: the best engine that this machine and this checkpoint allow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from llm.targets.base import Target
from llm.targets.cpu.target import load_cpu_target

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
    """A target over a `.gguf` file or a Hugging Face folder. `context` is cut to what the model was made for."""
    return load_cpu_target(path, threads=threads, context=context, cache=cache, progress=progress)
