"""One call's key-value cache together with the ids it holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from llm.fair_lock import FairLock
from llm.targets.base import (
    Cache,
    CopyableCache,
    Hidden,
    HiddenCache,
    KeysAndValues,
    Logits,
    PeekingCache,
)

PREFILL_CHUNK = 64


class NoHiddenStates(TypeError):
    """The target does not hand out hidden states, or cannot run its first layers alone."""


class Beginnings(Protocol):
    """Prompts that were read before (see llm.shared_prompt)."""

    def longest(self, ids: Sequence[int], more_than: int) -> KeysAndValues | None:
        """Keys and values of the longest known beginning of `ids`; None where it is no longer than that."""
        ...


class HiddenHistory:
    """The hidden states of a call's newest positions, up to `most` of them in one unbroken run."""

    def __init__(self, most: int, width: int) -> None:
        self.most = most
        self._start = 0
        self._states: Hidden = np.zeros((0, width), np.float32)

    def append(self, position: int, states: Hidden) -> None:
        """States from `position` on. What was kept of later positions has been rolled back by then."""
        kept = position - self._start
        before = self._states[:kept] if 0 <= kept <= len(self._states) else self._states[:0]
        self._states = np.concatenate([before, states])[-self.most :]
        self._start = position + len(states) - len(self._states)

    def clear(self) -> None:
        self._states = self._states[:0]

    def between(self, first: int, end: int) -> tuple[int, Hidden]:
        """Those of positions `first` to `end`, and where they start: later than `first` if some are gone."""
        start = max(first, self._start)
        return start, self._states[start - self._start : max(0, end - self._start)]


class CallCache:
    """The ids in a call's key-value cache and the cache itself: after every operation they agree.

    Rolling back is always to an absolute length, also after a pass that failed.
    """

    def __init__(self, cache: Cache, pass_lock: FairLock, beginnings: Beginnings | None = None) -> None:
        """`beginnings`: what `begin` may copy from; with them the cache must be a `CopyableCache`."""
        self._cache = cache
        self._pass_lock = pass_lock
        self._beginnings = beginnings
        self.ids: list[int] = []
        self._hidden: HiddenHistory | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def keep_prefix(self, ids: Sequence[int]) -> int:
        """Drop what differs from `ids`; returns how many of them the cache still holds."""
        shared = common_prefix(self.ids, ids)
        self.truncate(shared)
        return shared

    def begin(self, ids: Sequence[int]) -> int:
        """As `keep_prefix`, but where a prompt read before has more of `ids`, the cache becomes a copy.

        Where hidden states are kept, the last of those ids are left to be read, so that theirs are kept too.
        """
        kept = self.keep_prefix(ids)
        end = len(ids) - (self._hidden.most if self._hidden is not None else 0)
        if self._beginnings is None or end <= kept:
            return kept
        read = self._beginnings.longest(ids[:end], kept)
        if read is None:
            return kept
        assert isinstance(self._cache, CopyableCache)
        self.truncate(0)
        self._cache.copy_in(read)
        self.ids.extend(ids[: len(read)])
        if self._hidden is not None:
            self._hidden.clear()
        return len(read)

    def copy_out(self, length: int) -> KeysAndValues:
        """See `CopyableCache.copy_out`, which this cache must be."""
        assert isinstance(self._cache, CopyableCache)
        return self._cache.copy_out(length)

    def read(self, ids: Sequence[int], cancelled: Callable[[], bool], chunk: int = PREFILL_CHUNK) -> int:
        """Read ids without asking for logits, in chunks; returns how many were read before a cancellation."""
        for start in range(0, len(ids), chunk):
            if cancelled():
                return start
            self.score(ids[start : start + chunk], 0)
        return len(ids)

    def score(self, ids: Sequence[int], rows: int) -> Logits:
        """One pass: append ids; returns the logits of the last `rows` of them, float32 [rows, vocabulary]."""
        with self._pass_lock.held():
            try:
                logits = self._cache.extend(ids, rows)
            except BaseException:
                self._cache.truncate(len(self.ids))
                raise
            if self._hidden is not None:
                states = self._with_hidden().hidden(min(len(ids), self._hidden.most))
                self._hidden.append(len(self.ids) + len(ids) - len(states), states)
        self.ids.extend(ids)
        return logits

    def keep_hidden(self, most: int) -> None:
        """From the next pass on, keep the hidden states of the newest `most` positions.

        Raises `NoHiddenStates`.
        """
        cache = self._with_hidden()
        self._hidden = HiddenHistory(most, cache.hidden(0).shape[1])
        cache.keep_hidden(most)

    def hidden_since(self, position: int) -> tuple[int, Hidden]:
        """The kept hidden states [n, hidden] from `position`, or the first kept one after it, to the end.

        And the position of the first of them; there may be none.
        """
        if self._hidden is None:
            raise NoHiddenStates("no hidden states were asked for")
        return self._hidden.between(position, len(self.ids))

    def project(self, states: Hidden) -> Logits:
        """The target's head on hidden states: float32 [rows, vocabulary]. Raises `NoHiddenStates`."""
        with self._pass_lock.held():
            return self._with_hidden().project(states)

    def peek(self, ids: Sequence[int], ahead: int, layers: int) -> Logits:
        """See `PeekingCache.peek`. Raises `NoHiddenStates`."""
        if not isinstance(self._cache, PeekingCache):
            raise NoHiddenStates("the target cannot run its first layers alone")
        with self._pass_lock.held():
            return self._cache.peek(ids, ahead, layers)

    def _with_hidden(self) -> HiddenCache:
        if not isinstance(self._cache, HiddenCache):
            raise NoHiddenStates("the target does not hand out hidden states, which heads need")
        return self._cache

    def truncate(self, length: int) -> None:
        """Keep the first `length` ids. Longer than the cache: nothing changes."""
        if length < len(self.ids):
            self._cache.truncate(length)
            del self.ids[length:]

    def close(self) -> None:
        self._cache.close()
        self.ids.clear()


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the longest common beginning."""
    shorter = min(len(a), len(b))
    if list(a[:shorter]) == list(b[:shorter]):  # the usual case, and far faster than the loop
        return shorter
    return next(i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
