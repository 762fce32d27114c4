"""Where tests find the real models: the catalogue's cache, pulled on first use."""

from __future__ import annotations

import os
from pathlib import Path

UNPACKED = {
    "smart-turn-v3.2": "smart-turn-v3.2-cpu.onnx",
    "qwen2.5-coder-1.5b": "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    "qwen2.5-coder-0.5b": "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    "smollm2-135m": "SmolLM2-135M-Instruct.Q4_1.gguf",
    "piper-joe": "joe",
}


def path(name: str) -> Path:
    """The artifact's file or folder. `REJOINDER_TEST_MODELS` names a folder of unpacked models instead."""
    if unpacked := os.environ.get("REJOINDER_TEST_MODELS"):
        return Path(unpacked) / UNPACKED.get(name, name)
    from pipeline import catalogue

    return catalogue.path(name)
