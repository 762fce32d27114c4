"""The tasks of one call: each has this owner, and none outlives the call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self


class CallTasks:
    """A task group whose tasks report a failure instead of raising it.

    Use as an async context, which waits for all tasks at its end.
    """

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        """`failed` is told of every exception that a task ends with, once; it decides what becomes of the
        call."""
        self._failed = failed
        self._group = asyncio.TaskGroup()
        self._running: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._group.__aexit__(kind, error, trace)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine as a task of the call."""
        task = self._group.create_task(self._guarded(work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda _: work.close())  # it may be cancelled before it has begun
        return task

    def cancel_others(self) -> None:
        """Cancel every task but the one that asks."""
        for task in self._running - {asyncio.current_task()}:
            task.cancel()

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:
            self._failed(error)
