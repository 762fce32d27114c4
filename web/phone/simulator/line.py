"""The two ends of a simulated connection: in memory, for calls in virtual time, or a real websocket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from pipeline.events import PeerGone
from web.phone.simulator.shape import Message

_UNREAD = 200
"""Messages that a connection holds before its sender has to wait."""


class Link(Protocol):
    """The carrier's end of a connection."""

    async def send(self, message: Message) -> None: ...

    def messages(self) -> AsyncIterator[Message]: ...

    async def close(self) -> None: ...


@dataclass(slots=True)
class Network:
    """What happens between us and the carrier, in seconds and shares.

    `latency` one way, plus up to `jitter` at random; order is kept, as TCP does. `loss`: of the caller's
    frames, on the way to the carrier; `swapped`: of them, sent after their successor.
    """

    latency: float = 0.0
    jitter: float = 0.0
    loss: float = 0.0
    swapped: float = 0.0
    seed: int = 1

    @property
    def round_trip(self) -> float:
        """On average."""
        return 2 * self.latency + self.jitter


class MemoryLine:
    """A connection without a network: an end for the bridge, and `link`, the carrier's.

    `round_trip`: what a ping would measure of the network that the simulated call puts between them.
    """

    def __init__(self, *, send_timeout: float = 5.0, round_trip: float = 0.0) -> None:
        self.fault = ""
        self.round_trip = round_trip
        self.to_bridge: asyncio.Queue[Message | None] = asyncio.Queue(_UNREAD)
        self.to_carrier: asyncio.Queue[Message | None] = asyncio.Queue(_UNREAD)
        self.close_code: int | None = None
        self.closed = False
        self.link = MemoryLink(self)
        self._send_timeout = send_timeout

    async def messages(self) -> AsyncIterator[Message]:
        while (message := await self.to_bridge.get()) is not None:
            yield message

    async def send(self, message: Message) -> None:
        if self.closed:
            raise PeerGone("closed")
        try:
            async with asyncio.timeout(self._send_timeout):
                await self.to_carrier.put(message)
        except TimeoutError:
            self.closed = True
            self.fault = f"nothing was read for {self._send_timeout:g} s"
            raise PeerGone(self.fault) from None

    async def close(self, code: int, reason: str) -> None:
        if self.close_code is None:
            self.close_code = code
            self.closed = True
            if not self.to_carrier.full():
                self.to_carrier.put_nowait(None)


class MemoryLink:
    """The carrier's end of a `MemoryLine`."""

    def __init__(self, line: MemoryLine) -> None:
        self._line = line

    async def send(self, message: Message) -> None:
        if not self._line.closed:
            await self._line.to_bridge.put(message)

    async def messages(self) -> AsyncIterator[Message]:
        while (message := await self._line.to_carrier.get()) is not None:
            yield message

    async def close(self) -> None:
        if not self._line.closed:
            self._line.closed = True
            await self._line.to_bridge.put(None)


class SocketLink:
    """The carrier's end of a real websocket."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def send(self, message: Message) -> None:
        try:
            await self._socket.send(message)
        except ConnectionClosed:
            return

    async def messages(self) -> AsyncIterator[Message]:
        try:
            async for message in self._socket:
                yield message
        except ConnectionClosed:
            return

    async def close(self) -> None:
        await self._socket.close()
