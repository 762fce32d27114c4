"""Copies of the torch engines' keys and values, position by position, as bytes."""

from __future__ import annotations

import numpy as np
import torch

from llm.targets.base import KeysAndValues


def to_bytes(stored: torch.Tensor) -> KeysAndValues:
    """[..., positions, size] as uint8 [positions, bytes], copied."""
    rows = stored.movedim(-2, 0).flatten(1).contiguous().view(torch.uint8).cpu()
    copy: KeysAndValues = rows.numpy().copy()
    return copy


def from_bytes(read: KeysAndValues, like: torch.Tensor) -> torch.Tensor:
    """uint8 [positions, bytes] as a tensor with the type and, but for the positions, the shape of `like`."""
    rows = torch.from_numpy(np.array(read, order="C")).view(like.dtype).to(like.device)
    return rows.view(len(read), *like.shape[:-2], like.shape[-1]).movedim(0, -2)
