"""What every target promises, as functions over one of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from llm.targets.base import Cache, ContextFull, Target


def random_ids(target: Target, count: int, seed: int = 0) -> list[int]:
    ids: list[int] = np.random.default_rng(seed).integers(0, target.vocabulary, count).tolist()
    return ids


def rows_alone(target: Target, ids: list[int]) -> npt.NDArray[np.float32]:
    """Every row's logits from a pass of that row alone: [len(ids), vocabulary]."""
    cache = target.open()
    rows = np.concatenate([cache.extend([token], 1) for token in ids])
    cache.close()
    return rows


def differing_rows(
    target: Target, ids: list[int], reference: npt.NDArray[np.float32], trials: int, threads: tuple[int, ...]
) -> int:
    """How many rows' bits differ from the reference when the ids are read in random blocks of 1 to 16, on
    changing thread counts, with wrong drafts in between that are truncated again."""
    random = np.random.default_rng(7)
    different = 0
    for _ in range(trials):
        cache = target.open()
        while cache.length < len(ids):
            start = cache.length
            block = ids[start : start + int(random.integers(1, 17))]
            target.threads = int(random.choice(threads))
            if random.random() < 0.3:
                cache.extend(
                    random_ids(target, len(block), seed=start), int(random.integers(0, len(block) + 1))
                )
                cache.truncate(start)
            rows = int(random.integers(0, len(block) + 1))
            logits = cache.extend(block, rows)
            expected = reference[start + len(block) - rows : start + len(block)]
            different += int((logits != expected).any(axis=1).sum())
        cache.close()
    return different


def check_contract(target: Target, tolerance: float) -> None:
    """Shapes, ownership, truncation, independence of caches, borders. `tolerance` 0: bits must be equal."""
    ids = random_ids(target, 40)
    cache = target.open()
    assert cache.length == 0

    first = cache.extend(ids[:8], 3)
    assert first.shape == (3, target.vocabulary)
    assert first.dtype == np.float32
    assert first.flags.c_contiguous
    assert cache.length == 8
    kept = first.copy()
    assert cache.extend(ids[8:16], 0).shape == (0, target.vocabulary)
    np.testing.assert_array_equal(first, kept)  # later passes do not write to what was returned
    assert cache.memory > 0

    _check_truncation(target, cache, ids, tolerance)
    _check_independence(target, ids, tolerance)
    _check_borders(target, cache)
    cache.close()
    cache.close()
    with pytest.raises(ValueError, match="closed"):
        cache.extend([1], 1)


def _check_truncation(target: Target, cache: Cache, ids: list[int], tolerance: float) -> None:
    cache.extend(random_ids(target, 10, seed=1), 1)
    cache.truncate(16)
    assert cache.length == 16
    again = cache.extend(ids[16:24], 8)
    fresh = target.open()
    expected = fresh.extend(ids[:24], 8)
    np.testing.assert_allclose(again, expected, atol=tolerance, rtol=0)
    cache.truncate(0)
    np.testing.assert_allclose(cache.extend(ids[:24], 8), expected, atol=tolerance, rtol=0)


def _check_independence(target: Target, ids: list[int], tolerance: float) -> None:
    """Two calls taking turns read what each would read alone."""
    others = random_ids(target, 40, seed=2)
    expected = target.open().extend(ids[:20], 20), target.open().extend(others[:20], 20)
    one, other = target.open(), target.open()
    for start in range(0, 20, 5):
        block = slice(start, start + 5)
        np.testing.assert_allclose(one.extend(ids[block], 5), expected[0][block], atol=tolerance, rtol=0)
        np.testing.assert_allclose(other.extend(others[block], 5), expected[1][block], atol=tolerance, rtol=0)


def _check_borders(target: Target, cache: Cache) -> None:
    length = cache.length
    for ids, rows in (([], 0), ([1], 2), ([1], -1), ([target.vocabulary], 1), ([-1], 1)):
        with pytest.raises(ValueError, match=r".+"):
            cache.extend(ids, rows)
    for wrong in (-1, length + 1):
        with pytest.raises(ValueError, match="truncate"):
            cache.truncate(wrong)
    with pytest.raises(ContextFull):
        cache.extend([1] * (target.context - length + 1), 1)
    assert cache.length == length
    cache.extend([1] * (target.context - length), 1)
    assert cache.length == target.context
    with pytest.raises(ContextFull):
        cache.extend([1], 1)
