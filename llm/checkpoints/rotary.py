"""Inverse frequencies of rotary position embedding (RoFormer, arXiv 2104.09864), long-context scaling too."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from llm.checkpoints.description import UnsupportedCheckpoint


def inverse_frequencies(
    head_size: int, theta: float, scaling: Mapping[str, Any] | None = None
) -> tuple[float, ...]:
    """One frequency a pair of dimensions. `scaling`: Hugging Face's `rope_scaling` (none, linear, llama3).

    Raises `UnsupportedCheckpoint` for another kind of scaling.
    """
    plain = [theta ** (-2.0 * pair / head_size) for pair in range(head_size // 2)]
    kind = (scaling or {}).get("rope_type", (scaling or {}).get("type", "default"))
    if scaling is None or kind == "default":
        return tuple(plain)
    if kind == "linear":
        return tuple(frequency / float(scaling["factor"]) for frequency in plain)
    if kind == "llama3":
        return tuple(_llama3(frequency, scaling) for frequency in plain)
    raise UnsupportedCheckpoint(f"rotary scaling {kind!r} is not supported (none, linear and llama3 are)")


def _llama3(frequency: float, scaling: Mapping[str, Any]) -> float:
    """Llama 3.1's rule: long waves are stretched, short ones kept, those between blended."""
    factor = float(scaling["factor"])
    low, high = float(scaling["low_freq_factor"]), float(scaling["high_freq_factor"])
    turns = float(scaling["original_max_position_embeddings"]) * frequency / (2 * math.pi)
    if turns < low:
        return frequency / factor
    if turns > high:
        return frequency
    blend = (turns - low) / (high - low)
    return (1 - blend) * frequency / factor + blend * frequency
