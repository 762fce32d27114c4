"""What targets promise whose caches can be copied, as functions over one of them."""

from __future__ import annotations

import numpy as np
import pytest

from llm.targets.base import CopyableCache, CopyableTarget, Target
from tests.llm.targets.contract import random_ids


def check_copies(target: Target, tolerance: float) -> None:
    """A cache that begins with a copy reads on as one that read the ids itself. `tolerance` 0: same bits."""
    assert isinstance(target, CopyableTarget)
    assert target.position_bytes > 0
    ids = random_ids(target, min(320, target.context), seed=3)
    donor = _cache(target)
    donor.extend(ids[:-20], 1)
    for length in (1, 17, len(ids) - 21, len(ids) - 20):
        copy = donor.copy_out(length)
        assert copy.shape == (length, target.position_bytes)
        assert copy.dtype == np.uint8
        assert copy.flags.c_contiguous
        _check_reads_on(target, ids, copy, tolerance)
    _check_a_part(target, donor, ids, tolerance)
    _check_borders(target, donor)


def _check_reads_on(target: Target, ids: list[int], copy: np.ndarray, tolerance: float) -> None:
    before = copy.copy()
    begun, itself = _cache(target), target.open()
    begun.copy_in(copy)
    assert begun.length == len(copy)
    itself.extend(ids[: len(copy)], 0)
    for start in range(len(copy), len(copy) + 20, 5):
        block = ids[start : start + 5]
        np.testing.assert_allclose(begun.extend(block, 5), itself.extend(block, 5), atol=tolerance, rtol=0)
    np.testing.assert_array_equal(copy, before)  # the call writes into its own storage
    begun.truncate(len(copy))
    itself.truncate(len(copy))
    other = random_ids(target, 8, seed=4)
    np.testing.assert_allclose(begun.extend(other, 8), itself.extend(other, 8), atol=tolerance, rtol=0)
    begun.truncate(len(copy) // 2)
    itself.truncate(len(copy) // 2)
    np.testing.assert_allclose(begun.extend(other, 8), itself.extend(other, 8), atol=tolerance, rtol=0)
    begun.close()
    itself.close()


def _check_a_part(target: Target, donor: CopyableCache, ids: list[int], tolerance: float) -> None:
    """The first positions of a copy are a copy of the first positions, also one made of a copy."""
    begun, again = _cache(target), _cache(target)
    begun.copy_in(donor.copy_out(40)[:23])
    again.copy_in(begun.copy_out(23))
    np.testing.assert_array_equal(again.copy_out(23), donor.copy_out(23))
    expected = target.open()
    expected.extend(ids[:23], 0)
    wanted = expected.extend(ids[23:30], 7)
    np.testing.assert_allclose(again.extend(ids[23:30], 7), wanted, atol=tolerance, rtol=0)


def _check_borders(target: CopyableTarget, donor: CopyableCache) -> None:
    for wrong in (-1, donor.length + 1):
        with pytest.raises(ValueError, match="cannot copy"):
            donor.copy_out(wrong)
    assert donor.copy_out(0).shape == (0, target.position_bytes)
    copy = donor.copy_out(4)
    with pytest.raises(ValueError, match="empty"):
        donor.copy_in(copy)
    fresh = _cache(target)
    too_long = np.zeros((target.context + 1, target.position_bytes), np.uint8)
    for other in (copy[:0], copy[:, :-4], copy.reshape(-1), copy.view(np.int8), too_long):
        with pytest.raises(ValueError, match=r"positions"):
            fresh.copy_in(other)
    assert fresh.length == 0
    fresh.close()
    with pytest.raises(ValueError, match="closed"):
        fresh.copy_in(copy)


def _cache(target: Target) -> CopyableCache:
    cache = target.open()
    assert isinstance(cache, CopyableCache)
    return cache
