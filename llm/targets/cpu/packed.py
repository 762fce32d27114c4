"""The packed file: a model's weights laid out for the kernel, written once and memory-mapped ever after.

    8 bytes   magic "RJPACK" and two digits of the layout's version
    8 bytes   length of the header, little-endian
    header    JSON: name, configuration, and for each array its role, format, shape and place
    arrays    each from a multiple of 4096 bytes on

A start reads the header and maps the rest, so it takes no time, and processes share the pages.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
from filelock import FileLock

from llm.checkpoints import (
    Checkpoint,
    CheckpointError,
    Config,
    UnsupportedCheckpoint,
    Weight,
    fingerprint,
    read_checkpoint,
)
from llm.checkpoints.description import MATRICES, VECTORS
from llm.targets.cpu.large_pages import map_file

GROUP = 32
"""Inputs that the kernel quantises together: sizes must be multiples of it."""

MAGIC = b"RJPACK"
ALIGNMENT = 4096


@dataclass(frozen=True, slots=True)
class PackedArray:
    """One array. `layer` is -1 outside the layers; `format` is empty for float32 vectors."""

    layer: int
    role: str
    format: str
    data: npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class PackedModel:
    """A mapped packed file. The arrays keep the mapping alive."""

    name: str
    config: Config
    arrays: tuple[PackedArray, ...]


def packed_path(checkpoint: Path, kernel: ModuleType, folder: Path | None) -> Path:
    """Where the packed form of a checkpoint lies: in `folder`, or beside the checkpoint."""
    name = f"{checkpoint.name}.packed-{kernel.LAYOUT_VERSION}-{fingerprint(checkpoint)}"
    return (folder or checkpoint.parent) / name


def open_packed(
    checkpoint: Path,
    kernel: ModuleType,
    *,
    folder: Path | None = None,
    progress: Callable[[str], None] = lambda message: None,
) -> PackedModel:
    """Maps a checkpoint's packed form, writing it first if there is none.

    Safe for several processes at once: one writes, the others wait. `progress` is told in a sentence how far
    the writing is, at each whole percent, and nothing where there is nothing to write. Raises
    `CheckpointError` when the checkpoint cannot be read or the packed file cannot be written,
    `UnsupportedCheckpoint` for sizes that the kernel does not cover.
    """
    path = packed_path(checkpoint, kernel, folder)
    if not path.exists():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(path.with_name(path.name + ".lock")):
                if not path.exists():
                    what = f"packing {checkpoint.name} for this machine (once)"
                    _write(
                        path, read_checkpoint(checkpoint), kernel, lambda part: progress(f"{what}: {part}")
                    )
        except OSError as error:
            raise CheckpointError(f"cannot write {path} ({error}); choose another cache folder") from error
    return _map(path)


def _write(path: Path, checkpoint: Checkpoint, kernel: ModuleType, progress: Callable[[str], None]) -> None:
    _check_sizes(checkpoint.config)
    entries: list[dict[str, Any]] = []
    offset = 0
    for layer, role, source in _sources(checkpoint):
        form, shape, size = _packed_shape(role, source, kernel)
        entries.append(
            {"layer": layer, "role": role, "format": form, "shape": shape, "offset": offset, "bytes": size}
        )
        offset += -(-size // ALIGNMENT) * ALIGNMENT
    header = {"name": checkpoint.name, "config": checkpoint.config.as_dict(), "arrays": entries}
    encoded = json.dumps(header).encode()
    temporary = path.with_name(f"{path.name}.{os.getpid()}.partial")
    told = ""
    try:
        with temporary.open("wb") as stream:
            stream.write(_magic(kernel.LAYOUT_VERSION) + len(encoded).to_bytes(8, "little") + encoded)
            start = _aligned(stream.tell())
            for entry, (_, role, source) in zip(entries, _sources(checkpoint), strict=True):
                stream.seek(start + entry["offset"])
                stream.write(_packed_bytes(role, source, kernel).data)
                if (part := f"{_aligned(entry['offset'] + entry['bytes']) / offset:.0%}") != told:
                    progress(told := part)
            stream.truncate(start + offset)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


def _check_sizes(config: Config) -> None:
    for name in ("hidden", "feed_forward", "head_size"):
        if getattr(config, name) % GROUP:
            raise UnsupportedCheckpoint(f"{name} {getattr(config, name)} is not a multiple of {GROUP}")


def _sources(checkpoint: Checkpoint) -> Iterator[tuple[int, str, Weight | npt.NDArray[np.float32]]]:
    """Everything to be stored, in the order in which a pass reads it."""
    yield -1, "embedding", checkpoint.embedding
    for number, layer in enumerate(checkpoint.layers):
        for role in (*VECTORS, *MATRICES):
            source = getattr(layer, role)
            if source is not None:
                yield number, role, source
    yield -1, "final_norm", checkpoint.final_norm
    yield -1, "head", checkpoint.head


def _packed_shape(
    role: str, source: Weight | npt.NDArray[np.float32], kernel: ModuleType
) -> tuple[str, list[int], int]:
    if not isinstance(source, Weight):
        return "", list(source.shape), source.nbytes
    if role == "embedding":
        return source.format, list(source.data.shape), source.data.nbytes
    size: int = kernel.packed_bytes(source.format, source.outputs, source.inputs)
    return source.format, [size], size


def _packed_bytes(
    role: str, source: Weight | npt.NDArray[np.float32], kernel: ModuleType
) -> npt.NDArray[Any]:
    if not isinstance(source, Weight):
        return np.ascontiguousarray(source, dtype=np.float32)
    if role == "embedding":  # rows are looked up one by one, so they stay as the file has them
        return np.ascontiguousarray(source.data)
    packed: npt.NDArray[np.uint8] = kernel.pack(
        source.format, np.ascontiguousarray(source.data).reshape(-1), source.outputs, source.inputs
    )
    return packed


def _map(path: Path) -> PackedModel:
    mapping = map_file(path)
    header, start = _header(path, mapping)
    config = header["config"]
    config["inverse_frequencies"] = tuple(config["inverse_frequencies"])
    arrays = tuple(
        PackedArray(
            entry["layer"],
            entry["role"],
            entry["format"],
            np.frombuffer(
                mapping,
                dtype=np.uint8 if entry["format"] else np.float32,
                count=int(np.prod(entry["shape"])),
                offset=start + entry["offset"],
            ).reshape(entry["shape"]),
        )
        for entry in header["arrays"]
    )
    return PackedModel(header["name"], Config(**config), arrays)


def _header(path: Path, mapping: mmap.mmap) -> tuple[dict[str, Any], int]:
    """The header, and where the arrays start; refuses a file that is not whole."""
    damaged = CheckpointError(f"{path} is damaged; delete it, and it is written anew")
    length = int.from_bytes(mapping[8:16], "little")
    start = _aligned(16 + length)
    if mapping[:6] != MAGIC or start > len(mapping):
        raise damaged
    header: dict[str, Any] = json.loads(mapping[16 : 16 + length])
    if start + max(entry["offset"] + entry["bytes"] for entry in header["arrays"]) > len(mapping):
        raise damaged
    return header, start


def _magic(version: int) -> bytes:
    return MAGIC + f"{version:02d}".encode()


def _aligned(position: int) -> int:
    return -(-position // ALIGNMENT) * ALIGNMENT
