"""One call's key-value cache together with the ids it holds, and the order in which calls may run a pass."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from llm.targets.base import Cache, Logits

PREFILL_CHUNK = 64


class Turnstile:
    """A lock whose waiters get it in the order in which they came, so that no call starves another."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._busy = False
        self._waiting: deque[threading.Event] = deque()

    @contextmanager
    def held(self) -> Iterator[None]:
        with self._guard:
            turn = threading.Event()
            if self._busy:
                self._waiting.append(turn)
            else:
                self._busy = True
                turn.set()
        turn.wait()
        try:
            yield
        finally:
            with self._guard:
                if self._waiting:
                    self._waiting.popleft().set()
                else:
                    self._busy = False


class CallCache:
    """The ids in a call's key-value cache and the cache itself: after every operation they agree.

    Rolling back is always to an absolute length, also after a pass that failed.
    """

    def __init__(self, cache: Cache, passes: Turnstile) -> None:
        self._cache = cache
        self._passes = passes
        self.ids: list[int] = []
        self._hidden: tuple[int, npt.NDArray[np.float32]] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def keep_prefix(self, ids: Sequence[int]) -> int:
        """Drop what differs from `ids`; returns how many of them the cache still holds."""
        shared = common_prefix(self.ids, ids)
        self.truncate(shared)
        return shared

    def read(self, ids: Sequence[int], cancelled: Callable[[], bool]) -> int:
        """Read ids without asking for logits, in chunks; returns how many were read before a cancellation."""
        for start in range(0, len(ids), PREFILL_CHUNK):
            if cancelled():
                return start
            self.score(ids[start : start + PREFILL_CHUNK], 0)
        return len(ids)

    def score(self, ids: Sequence[int], rows: int) -> Logits:
        """One pass: append ids; returns the logits of the last `rows` of them, float32 [rows, vocabulary]."""
        with self._passes.held():
            try:
                logits = self._cache.extend(ids, rows)
            except BaseException:
                self._cache.truncate(len(self.ids))
                raise
            if rows and hasattr(self._cache, "hidden"):
                self._hidden = (len(self.ids) + len(ids) - rows, self._cache.hidden(rows))
        self.ids.extend(ids)
        return logits

    def hidden_at(self, position: int) -> npt.NDArray[np.float32] | None:
        """The target's hidden state [hidden] at a position of the last pass, where it hands them out."""
        if self._hidden is None:
            return None
        start, states = self._hidden
        inside = start <= position < min(start + len(states), len(self.ids))
        return states[position - start] if inside else None

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
