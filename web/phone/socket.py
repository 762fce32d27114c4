"""A carrier's websocket as the bridge's line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed, ConnectionClosedOK

from pipeline.events import PeerGone
from web.phone.wire import Message


class WebSocketLine:
    """`send_timeout`: seconds that the other side may take to accept a message; then it is cut off."""

    def __init__(self, connection: Connection, *, send_timeout: float = 5.0) -> None:
        self.fault = ""
        self._connection = connection
        self._send_timeout = send_timeout

    @property
    def round_trip(self) -> float:
        """Of the last ping."""
        return self._connection.latency

    async def messages(self) -> AsyncIterator[Message]:
        try:
            await self._connection.ping()  # its answer is the first measure of the round trip
            async for message in self._connection:
                yield message
        except ConnectionClosedOK:
            return
        except ConnectionClosed as closed:
            self.fault = self.fault or f"the connection broke: {closed}"

    async def send(self, message: Message) -> None:
        try:
            async with asyncio.timeout(self._send_timeout):
                await self._connection.send(message)
        except TimeoutError:
            self.fault = f"the carrier took no message for {self._send_timeout:g} s"
            self._connection.transport.abort()
            raise PeerGone(self.fault) from None
        except ConnectionClosed as closed:
            raise PeerGone(str(closed)) from None

    async def close(self, code: int, reason: str) -> None:
        await self._connection.close(code, reason)
