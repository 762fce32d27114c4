"""An event loop whose clock jumps: when nothing is ready, time moves to the next timer."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    """Neither waits for files nor looks at them: tells the loop how long it would have waited."""

    waited = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("deadlock: nothing is scheduled and nothing can happen any more")
        self.waited += max(0.0, timeout)
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Starts at time 0. No threads and no sockets may be waited for: nothing outside the loop happens."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.waited


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time; fails if it leaves a task behind."""
    loop = VirtualTimeLoop()
    try:
        result = loop.run_until_complete(main)
        left = [task for task in asyncio.all_tasks(loop) if not task.done()]
        assert not left, f"tasks left running: {left}"
        return result
    finally:
        loop.close()
