"""What all caches need: checks of their arguments, the cut into blocks, a buffer of hidden states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from llm.targets.base import ContextFull, Hidden, KeysAndValues, Logits, NonFiniteLogits


def check_extend(
    closed: bool, length: int, ids: Sequence[int], rows: int, context: int, vocabulary: int
) -> None:
    """Checks the arguments of `Cache.extend`; see there for what is raised."""
    if closed:
        raise ValueError("the cache is closed")
    if not len(ids) or not 0 <= rows <= len(ids):
        raise ValueError(f"cannot give {rows} rows of {len(ids)} ids")
    if length + len(ids) > context:
        raise ContextFull(f"{len(ids)} ids after {length} do not fit into a context of {context}")
    if min(ids) < 0 or max(ids) >= vocabulary:
        raise ValueError(f"a token id is outside the vocabulary of {vocabulary}: {min(ids)} to {max(ids)}")


def check_truncate(length: int, present: int) -> None:
    """Checks the argument of `Cache.truncate`."""
    if not 0 <= length <= present:
        raise ValueError(f"cannot truncate {present} positions to {length}")


def check_copy_out(length: int, present: int) -> None:
    """Checks the argument of `CopyableCache.copy_out`."""
    if not 0 <= length <= present:
        raise ValueError(f"cannot copy {length} of {present} positions")


def check_copy_in(closed: bool, present: int, read: KeysAndValues, position_bytes: int, context: int) -> None:
    """Checks the state and the argument of `CopyableCache.copy_in`."""
    if closed:
        raise ValueError("the cache is closed")
    if present:
        raise ValueError("only an empty cache can begin with a copy")
    if read.ndim != 2 or read.shape[1] != position_bytes or read.dtype != np.uint8:
        raise ValueError(f"positions of {position_bytes} bytes cannot be {read.dtype} {read.shape}")
    if not 1 <= len(read) <= context:
        raise ValueError(f"{len(read)} copied positions do not fit into a context of {context}")


class Block(NamedTuple):
    """A part of the ids of one `extend`, and of how many of its last rows logits and hidden states count."""

    start: int
    end: int
    rows: int
    hidden_rows: int


def blocks(count: int, most: int, rows: int, hidden_rows: int) -> Iterator[Block]:
    """`count` ids in blocks of at most `most`; the last `rows` and `hidden_rows` of them all are wanted."""
    for start in range(0, count, most):
        end = min(start + most, count)
        yield Block(start, end, *(max(0, min(end - start, end - count + n)) for n in (rows, hidden_rows)))


def check_finite(logits: Logits, name: str) -> None:
    """Checks the result of every pass."""
    if not np.isfinite(logits).all():
        raise NonFiniteLogits(f"{name} gave a logit that is not finite")


class HiddenStateBuffer:
    """A base of `HiddenCache`s: `extend` leaves the last `_kept` states in `_hidden`."""

    def __init__(self, hidden_size: int) -> None:
        self._kept = 0
        self._hidden: Hidden = np.zeros((0, hidden_size), np.float32)

    def keep_hidden(self, most: int) -> None:
        self._kept = most

    def hidden(self, rows: int) -> Hidden:
        if not 0 <= rows <= len(self._hidden):
            raise ValueError(f"{len(self._hidden)} hidden states were kept of the last ids, not {rows}")
        return self._hidden[len(self._hidden) - rows :]
