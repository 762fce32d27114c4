"""What every target that hands out hidden states promises, as functions over one of them."""

from __future__ import annotations

import numpy as np
import pytest

from llm.targets.base import HiddenCache, HiddenTarget, PeekingCache, PeekingTarget, Target
from tests.llm.targets.contract import random_ids


def open_hidden(target: Target, most: int) -> HiddenCache:
    assert isinstance(target, HiddenTarget)
    cache = target.open()
    assert isinstance(cache, HiddenCache)
    cache.keep_hidden(most)
    return cache


def check_hidden(target: Target, tolerance: float) -> None:
    """Shapes, borders, the head, and the same states in every block. `tolerance` 0: bits must be equal."""
    ids = random_ids(target, 100)
    alone = open_hidden(target, 1)
    logits, states = [], []
    for token in ids:
        logits.append(alone.extend([token], 1))
        states.append(alone.hidden(1))
    expected = np.concatenate(states)
    _check_blocks(target, ids, expected, tolerance)
    np.testing.assert_allclose(
        np.concatenate([alone.project(expected[i : i + 7]) for i in range(0, 100, 7)]),
        np.concatenate(logits),
        atol=tolerance,
        rtol=0,
    )
    _check_borders(target, ids)


def _check_blocks(target: Target, ids: list[int], expected: np.ndarray, tolerance: float) -> None:
    random = np.random.default_rng(3)
    whole = open_hidden(target, 100)
    assert whole.extend(ids, 0).shape == (0, target.vocabulary)
    np.testing.assert_allclose(whole.hidden(100), expected, atol=tolerance, rtol=0)
    blocks = open_hidden(target, 20)
    while blocks.length < len(ids):
        start = blocks.length
        block = ids[start : start + int(random.integers(1, 17))]
        blocks.extend(random_ids(target, len(block), seed=start), len(block))
        blocks.truncate(start)
        kept = blocks.extend(block, int(random.integers(0, len(block) + 1)))
        assert kept.shape[1] == target.vocabulary
        hidden = blocks.hidden(len(block))
        assert hidden.dtype == np.float32
        np.testing.assert_allclose(hidden, expected[start : start + len(block)], atol=tolerance, rtol=0)


def _check_borders(target: Target, ids: list[int]) -> None:
    assert isinstance(target, HiddenTarget)
    assert target.embed(ids[:3]).shape == (3, target.hidden_size)
    cache = open_hidden(target, 4)
    assert cache.hidden(0).shape == (0, target.hidden_size)
    cache.extend(ids[:10], 1)
    assert cache.hidden(4).shape == (4, target.hidden_size)
    with pytest.raises(ValueError, match="hidden states were kept"):
        cache.hidden(5)
    cache.keep_hidden(0)
    cache.extend(ids[:2], 2)
    with pytest.raises(ValueError, match="hidden states were kept"):
        cache.hidden(1)


def check_peeks(target: Target) -> None:
    """A peek through all layers gives the row's own bits, through fewer others, and leaves no trace."""
    assert isinstance(target, PeekingTarget)
    ids = random_ids(target, 30)
    plain, cache = target.open(), target.open()
    assert isinstance(cache, PeekingCache)
    expected = plain.extend(ids, 30)
    cache.extend(ids[:10], 0)
    assert np.array_equal(cache.peek(ids[10:13], 0, target.layers), expected[12:13])
    assert np.array_equal(cache.peek([ids[13]], 3, target.layers), expected[13:14])
    assert not np.array_equal(cache.peek([ids[13]], 3, 1), expected[13:14])
    for token in random_ids(target, 5, seed=9):
        cache.peek([token], 4, 1)
    assert cache.length == 10
    assert np.array_equal(cache.extend(ids[10:], 20), expected[10:])
    for wrong in ((1, 1), (-1, 1), (0, 0), (0, target.layers + 1)):
        with pytest.raises(ValueError, match=r".+"):
            cache.peek([1], *wrong)
