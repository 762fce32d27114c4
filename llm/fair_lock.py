"""The order in which calls may run a pass."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class FairLock:
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
