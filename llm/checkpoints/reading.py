"""Opens a checkpoint by path, and names its content cheaply."""

from __future__ import annotations

import hashlib
from pathlib import Path

from llm.checkpoints.description import Checkpoint, CheckpointError
from llm.checkpoints.gguf_file import read_gguf
from llm.checkpoints.safetensors_folder import read_safetensors

EXPECTED = "give a .gguf file or a folder with config.json"

SAMPLE = 1 << 16
SAMPLES = 64


def read_checkpoint(path: Path) -> Checkpoint:
    """A `.gguf` file or a Hugging Face folder (config.json and safetensors), weights left memory-mapped.

    Raises `CheckpointError` when it cannot be read, `UnsupportedCheckpoint` when it is another kind of model.
    """
    if path.is_dir():
        return read_safetensors(path)
    if path.is_file():
        return read_gguf(path)
    raise CheckpointError(f"there is no checkpoint at {path}: {EXPECTED}")


def fingerprint(path: Path) -> str:
    """16 hexadecimal digits naming a checkpoint's content, in milliseconds whatever its size.

    Covers each file's name, size and 64 samples of 64 KiB spread over it: enough to tell two checkpoints
    apart, not a proof against tampering. Raises `CheckpointError` where there is nothing.
    """
    if not path.exists():
        raise CheckpointError(f"there is no checkpoint at {path}: {EXPECTED}")
    digest = hashlib.sha256()
    files = [path] if path.is_file() else sorted([*path.glob("*.safetensors"), *path.glob("config.json")])
    for file in files:
        size = file.stat().st_size
        digest.update(f"{file.name if path.is_dir() else ''} {size}\n".encode())
        with file.open("rb") as stream:
            for index in range(SAMPLES):
                stream.seek(max(0, size - SAMPLE) * index // (SAMPLES - 1))
                digest.update(stream.read(SAMPLE))
    return digest.hexdigest()[:16]
