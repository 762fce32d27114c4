"""The packed file: written once, reused, told apart by content, never left half-written."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from llm.checkpoints import CheckpointError
from llm.targets.cpu.large_pages import map_file
from llm.targets.cpu.packed import open_packed, packed_path
from llm.targets.cpu.target import CpuTarget
from tests.llm.checkpoints.tiny import write_gguf


def logits(path: Path, kernel: ModuleType, folder: Path | None) -> np.ndarray:
    model = open_packed(path, kernel, folder=folder)
    target = CpuTarget(model, kernel, threads=1, context=64, path=kernel.supported_paths()[0])
    return target.open().extend([5, 6, 7], 3)


def test_is_written_once_and_needs_the_checkpoint_only_for_its_name(
    tmp_path: Path, kernel: ModuleType
) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", "Q4_0")
    told: list[str] = []
    open_packed(path, kernel, folder=tmp_path / "cache", progress=told.append)
    packed = packed_path(path, kernel, tmp_path / "cache")
    written = packed.stat().st_mtime_ns
    open_packed(path, kernel, folder=tmp_path / "cache", progress=told.append)
    assert told[0].startswith("packing tiny.gguf for this machine (once): ")
    shares = [int(message.rpartition(" ")[2].rstrip("%")) for message in told]
    assert shares == sorted(set(shares))
    assert shares[-1] == 100
    assert packed.stat().st_mtime_ns == written
    assert [file.name for file in packed.parent.iterdir() if "partial" in file.name] == []


def test_lies_beside_the_checkpoint_by_default(tmp_path: Path, kernel: ModuleType) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", "Q4_0")
    open_packed(path, kernel)
    assert packed_path(path, kernel, None).parent == tmp_path
    assert packed_path(path, kernel, None).exists()


def test_another_content_under_the_same_name_is_packed_anew(tmp_path: Path, kernel: ModuleType) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", "Q4_0", seed=1)
    before = logits(path, kernel, tmp_path)
    write_gguf(path, "Q4_0", seed=2)
    assert not np.array_equal(logits(path, kernel, tmp_path), before)


def test_a_damaged_checkpoint_leaves_nothing_behind(tmp_path: Path, kernel: ModuleType) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", "Q4_0")
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(CheckpointError):
        open_packed(path, kernel, folder=tmp_path / "cache")
    assert not packed_path(path, kernel, tmp_path / "cache").exists()


def test_a_packed_file_cut_short_is_told(tmp_path: Path, kernel: ModuleType) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", "Q4_0")
    open_packed(path, kernel)
    packed = packed_path(path, kernel, None)
    packed.write_bytes(packed.read_bytes()[:-5000])
    with pytest.raises(CheckpointError, match="delete it"):
        open_packed(path, kernel)


def test_a_file_written_in_small_pieces_is_mapped_as_it_is(tmp_path: Path) -> None:
    """Larger than the sample that is evicted first, so that where there are large pages all of it is."""
    content = np.random.default_rng(0).bytes((34 << 20) + 5)
    file = tmp_path / "weights"
    with file.open("wb", buffering=0) as stream:
        for start in range(0, len(content), 1 << 14):
            stream.write(content[start : start + (1 << 14)])
        os.fsync(stream.fileno())
    for _ in range(2):
        mapping = map_file(file)
        assert mapping[:] == content
        mapping.close()
