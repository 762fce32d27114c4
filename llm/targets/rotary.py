"""Rotary position embedding for the torch engines: angles once, rotation of a head's halves."""

from __future__ import annotations

import torch

from llm.checkpoints import Config


def angles(config: Config, context: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines, float32 [context, head_size / 2] each, worked out in float64."""
    frequencies = torch.tensor(config.inverse_frequencies, dtype=torch.float64)
    table = torch.arange(context, dtype=torch.float64)[:, None] * frequencies
    return table.cos().float(), table.sin().float()


def rotate(heads: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """`heads` [rows, heads, head_size] rotated by the angles of their rows, [rows, head_size / 2]."""
    first, second = heads.chunk(2, dim=-1)
    cosines, sines = cosines[:, None], sines[:, None]
    return torch.cat([first * cosines - second * sines, second * cosines + first * sines], dim=-1)
