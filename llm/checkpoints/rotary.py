"""Inverse frequencies of rotary position embedding (RoFormer, arXiv 2104.09864), long-context scaling too."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from llm.checkpoints.description import CheckpointError, UnsupportedCheckpoint


def inverse_frequencies(
    head_size: int, theta: float, scaling: Mapping[str, Any] | None = None
) -> tuple[float, ...]:
    """One frequency a pair of dimensions. `scaling`: Hugging Face's `rope_scaling` (none, linear, llama3).

    Raises `UnsupportedCheckpoint` for another kind of scaling, `CheckpointError` where a number is none.
    """
    plain = [theta ** (-2.0 * pair / head_size) for pair in range(head_size // 2)]
    kind = (scaling or {}).get("rope_type", (scaling or {}).get("type", "default"))
    if scaling is None or kind == "default":
        return tuple(plain)
    if kind == "linear":
        return tuple(frequency / positive(scaling, "factor") for frequency in plain)
    if kind == "llama3":
        return tuple(_llama3(frequency, scaling) for frequency in plain)
    raise UnsupportedCheckpoint(f"rotary scaling {kind!r} is not supported (none, linear and llama3 are)")


def _llama3(frequency: float, scaling: Mapping[str, Any]) -> float:
    """Llama 3.1's rule: long waves are stretched, short ones kept, those between blended."""
    factor = positive(scaling, "factor")
    low, high = positive(scaling, "low_freq_factor"), positive(scaling, "high_freq_factor")
    turns = positive(scaling, "original_max_position_embeddings") * frequency / (2 * math.pi)
    if turns < low:
        return frequency / factor
    if turns > high:
        return frequency
    blend = (turns - low) / (high - low)
    return (1 - blend) * frequency / factor + blend * frequency


def positive(values: Mapping[str, Any], key: str) -> float:
    """A number of a configuration. Raises `CheckpointError` where there is none above 0."""
    value = values.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
        raise CheckpointError(f"{key} is {value!r}, where a number above 0 is due")
    return float(value)
