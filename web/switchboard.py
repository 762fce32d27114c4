"""Connects the ways in to the one service: opens calls when it is ready, and ends them all when it stops."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pipeline.agent import AgentError
from pipeline.call import Call
from pipeline.events import Peer
from pipeline.service import CallsBusy, Service


class CallRefused(Exception):
    """No call can be opened now. `code`: not_ready, too_many_calls, shutting_down, unknown_agent."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Switchboard:
    """The service, once its models are loaded, and the calls that are running on it."""

    def __init__(self) -> None:
        self.service: Service | None = None
        self._calls: set[Call] = set()
        self._all_over = asyncio.Event()
        self._all_over.set()
        self._stopping = False

    @property
    def ready(self) -> bool:
        return self.service is not None and self.service.ready and not self._stopping

    @property
    def running(self) -> int:
        """How many calls there are."""
        return len(self._calls)

    @contextmanager
    def line(
        self,
        peer: Peer,
        *,
        agent: str | None = None,
        origin: str,
        caller: str | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> Iterator[Call]:
        """A new call, to be run with `conduct` while the context lasts. Raises CallRefused."""
        call = self._open(peer, agent, origin, caller, variables or {})
        self._calls.add(call)
        self._all_over.clear()
        try:
            yield call
        finally:
            self._calls.discard(call)
            if not self._calls:
                self._all_over.set()

    async def hang_up_all(self, grace_seconds: float) -> None:
        """End every call with the reason `shutdown` and wait until they are over, at most `grace_seconds`."""
        self._stopping = True
        for call in self._calls:
            call.hang_up("shutdown")
        try:
            await asyncio.wait_for(self._all_over.wait(), grace_seconds)
        except TimeoutError:
            return

    def _open(
        self, peer: Peer, agent: str | None, origin: str, caller: str | None, variables: Mapping[str, str]
    ) -> Call:
        if self._stopping:
            raise CallRefused("shutting_down", "the service is shutting down")
        if self.service is None or not self.service.ready:
            raise CallRefused("not_ready", "the models are still loading; try again in a few seconds")
        limit = self.service.settings.max_calls
        if self.running >= limit:  # the service counts calls only once they run
            raise CallRefused("too_many_calls", f"all {limit} lines are busy (max_calls)")
        try:
            return self.service.call(peer, agent=agent, origin=origin, caller=caller, variables=variables)
        except CallsBusy as busy:
            raise CallRefused("too_many_calls", str(busy)) from None
        except AgentError as unknown:
            raise CallRefused("unknown_agent", str(unknown)) from None


async def conduct(call: Call, listening: Coroutine[Any, Any, None]) -> None:
    """Run a call beside the loop that reads its socket, until both are over.

    The end of the reading (the peer is gone) ends the call; the end of the call ends the reading.
    """
    reading = asyncio.create_task(listening)
    reading.add_done_callback(lambda _: call.hang_up("peer_gone"))
    try:
        await call.run()
    finally:
        reading.cancel()
        await asyncio.wait([reading])
    if not reading.cancelled() and (failure := reading.exception()) is not None:
        raise failure
