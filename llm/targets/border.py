"""The checks that every cache written in Python makes at its border."""

from __future__ import annotations

from collections.abc import Sequence

from llm.targets.base import ContextFull


def check_extend(
    closed: bool, length: int, ids: Sequence[int], rows: int, context: int, vocabulary: int
) -> None:
    """The border of every `Cache.extend`; see there for what is raised."""
    if closed:
        raise ValueError("the cache is closed")
    if not len(ids) or not 0 <= rows <= len(ids):
        raise ValueError(f"cannot give {rows} rows of {len(ids)} ids")
    if length + len(ids) > context:
        raise ContextFull(f"{len(ids)} ids after {length} do not fit into a context of {context}")
    if min(ids) < 0 or max(ids) >= vocabulary:
        raise ValueError(f"a token id is outside the vocabulary of {vocabulary}: {min(ids)} to {max(ids)}")


def check_truncate(length: int, present: int) -> None:
    """The border of every `Cache.truncate`."""
    if not 0 <= length <= present:
        raise ValueError(f"cannot truncate {present} positions to {length}")
