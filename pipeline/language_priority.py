"""Committed replies before drafts: a reply that somebody waits for is never slowed by work that may be thrown
away."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LOOK_SECONDS = 0.02
"""Seconds between a waiting draft's looks at whether it was cancelled."""


class LanguagePriority:
    """Of the replies that the language stage is making, which are committed. Used from the loop and from the
    stage's threads.

    `at_once`: committed replies that the stage makes side by side without slowing any: one for the embedded
    model, more for a server that batches.
    """

    def __init__(self, at_once: int = 1) -> None:
        self._at_once = at_once
        self._making: dict[object, bool] = {}
        self._changed = threading.Condition()

    @property
    def taken(self) -> bool:
        """Whether the stage is busy with as many committed replies as it can make at once."""
        return sum(self._making.values()) >= self._at_once

    @contextmanager
    def making(self, reply: object, *, committed: bool) -> Iterator[None]:
        """While the language stage makes this reply."""
        self._note(reply, committed)
        try:
            yield
        finally:
            with self._changed:
                del self._making[reply]
                self._changed.notify_all()

    def commit(self, reply: object) -> None:
        """If this reply is being made, it is a draft no longer."""
        if reply in self._making:
            self._note(reply, True)

    def stand_aside(self, reply: object, cancelled: Callable[[], bool]) -> bool:
        """Between two passes, on the stage's thread: a draft waits here as long as committed replies take the
        stage. Returns whether it was cancelled."""
        with self._changed:
            while self.taken and not self._making.get(reply) and not cancelled():
                self._changed.wait(_LOOK_SECONDS)
        return cancelled()

    def _note(self, reply: object, committed: bool) -> None:
        with self._changed:
            self._making[reply] = committed
            self._changed.notify_all()
