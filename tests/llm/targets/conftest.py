"""Models for the targets' tests: tiny random ones, and the smallest real one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from llm.targets.cpu.build import ensure_built
from llm.targets.cpu.packed import open_packed
from llm.targets.cpu.target import CpuTarget
from tests.llm.checkpoints.tiny import write_gguf
from tests.models import path

# Formats in blocks of 32 run on sizes that leave a chunk half empty; those in blocks of 256 need larger ones.
SMALL = {"hidden": 96, "feed_forward": 160, "heads": 3, "key_value_heads": 1, "vocabulary": 83}
LARGE = {"hidden": 256, "feed_forward": 512, "heads": 4, "key_value_heads": 2, "vocabulary": 100}


@pytest.fixture(scope="session")
def kernel() -> ModuleType:
    return ensure_built()


@pytest.fixture(scope="session")
def packed_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packed")


@pytest.fixture(scope="session")
def tiny(packed_folder: Path) -> Callable[..., Path]:
    """`tiny("Q4_K", "qwen3")` is the path of a random model in that format."""

    def make(form: str, architecture: str = "qwen2") -> Path:
        file = packed_folder / f"{form}-{architecture}.gguf"
        if not file.exists():
            write_gguf(file, form, architecture=architecture, **(LARGE if form.endswith("_K") else SMALL))
        return file

    return make


@pytest.fixture(scope="session")
def cpu_target(kernel: ModuleType, packed_folder: Path) -> Callable[..., CpuTarget]:
    """`cpu_target(path, instructions)` packs a checkpoint into the session's folder and loads it."""

    def load(
        checkpoint: Path, instructions: str | None = None, *, threads: int = 1, context: int = 512
    ) -> CpuTarget:
        model = open_packed(checkpoint, kernel, folder=packed_folder)
        chosen = instructions or kernel.supported_paths()[0]
        return CpuTarget(model, kernel, threads=threads, context=context, path=chosen)

    return load


@pytest.fixture(scope="session")
def smallest() -> Path:
    return path("smollm2-135m")
