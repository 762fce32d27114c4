"""Threads for the blocking stages: the event loop never runs a model, and nothing is killed, only asked to
stop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

_SLOTS = 16
"""Items a stream may be ahead of its consumer; a producer that is further ahead waits."""

_WAIT_FOR_SLOT = 0.05
"""Seconds between a waiting producer's looks at its cancel token."""

_PATIENCE = 40
"""Looks after which a cancelled producer gives up delivering: its last item tells what it had done."""


class CancelToken:
    """Asks a stage to stop between passes. Calling it says whether to stop; it is never un-cancelled."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        self._event.set()

    def __call__(self) -> bool:
        return self._event.is_set()


class Workers:
    """One thread pool a stage.

    `threads` maps a stage's name to its number of threads. A coroutine that is cancelled while its stage
    works waits for the stage to return (the owner cancels the token first), so no thread outlives its call.
    """

    def __init__(self, threads: Mapping[str, int]) -> None:
        self._pools = {
            stage: ThreadPoolExecutor(max_workers=count, thread_name_prefix=stage)
            for stage, count in threads.items()
        }

    async def run(self, stage: str, function: Callable[..., T], *arguments: Any) -> T:
        """Run a blocking function on the stage's pool; raises what it raises."""
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._pools[stage], lambda: function(*arguments))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait({future})
            if not future.cancelled():
                future.exception()  # seen, so that it is not reported as never retrieved
            raise

    async def stream(
        self, stage: str, produce: Callable[[], Iterable[T]], token: CancelToken
    ) -> AsyncGenerator[T, None]:
        """Iterate a blocking producer on the stage's pool, item by item.

        Use inside `contextlib.aclosing`. Leaving early cancels `token` and waits for the producer to stop.
        """
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[tuple[bool, Any]] = asyncio.Queue()
        slots = threading.Semaphore(_SLOTS)

        def pump() -> None:
            patience = _PATIENCE
            for item in produce():
                while not slots.acquire(timeout=_WAIT_FOR_SLOT):
                    patience -= token()
                    if not patience:
                        return
                with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    loop.call_soon_threadsafe(arrived.put_nowait, (True, item))

        future = loop.run_in_executor(self._pools[stage], pump)
        future.add_done_callback(lambda _: arrived.put_nowait((False, None)))
        completed = False
        try:
            while True:
                more, item = await arrived.get()
                if not more:
                    break
                slots.release()
                yield item
            await future
            completed = True
        finally:
            if not completed:
                token.cancel()
            await asyncio.wait({future})
            if not future.cancelled():
                future.exception()

    def close(self) -> None:
        """Wait for running work and stop the threads."""
        for pool in self._pools.values():
            pool.shutdown(wait=True, cancel_futures=True)
