"""Connects the ways in to the one service: opens calls when it is ready, and ends them all when it stops."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
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
    """The service, once its models are loaded: opens calls on it while it takes any."""

    def __init__(self) -> None:
        self.service: Service | None = None
        self._stopping = False

    @property
    def ready(self) -> bool:
        return self.service is not None and self.service.ready and not self._stopping

    @property
    def running(self) -> int:
        """How many calls there are."""
        return len(self.service.running) if self.service is not None else 0

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
        with ExitStack() as stack:
            yield self._open(stack, peer, agent, origin, caller, variables or {})

    async def hang_up_all(self, grace_seconds: float) -> None:
        """End every call with the reason `shutdown` and wait until they are over, at most `grace_seconds`."""
        self._stopping = True
        if self.service is not None:
            self.service.running.hang_up("shutdown")
            with suppress(TimeoutError):
                await asyncio.wait_for(self.service.running.over(), grace_seconds)

    def _open(
        self,
        stack: ExitStack,
        peer: Peer,
        agent: str | None,
        origin: str,
        caller: str | None,
        variables: Mapping[str, str],
    ) -> Call:
        if self._stopping:
            raise CallRefused("shutting_down", "the service is shutting down")
        if self.service is None or not self.service.ready:
            raise CallRefused("not_ready", "the models are still loading; try again in a few seconds")
        line = self.service.line(peer, agent=agent, origin=origin, caller=caller, variables=variables)
        try:
            return stack.enter_context(line)
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
