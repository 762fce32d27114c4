"""An open websocket, in the words of a front end; aiohttp carries it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from aiohttp import WebSocketError, WSMessage, WSMsgType, web

from pipeline.events import PeerGone

# It would log what a client offers as subprotocols, and a token may be among that.
logging.getLogger("aiohttp.websocket").setLevel(logging.ERROR)

CLOSE_SECONDS = 2.0
"""How long the other side may take to answer our closing."""

PING_SECONDS = 20.0
"""After so long without anything from the other side it is asked whether it is there; half as long again
without an answer, and the connection is given up."""

_NORMAL_CODES = (0, 1000, 1001)  # aiohttp's 0: a close frame without a code
_MOST_REASON = 123
"""Bytes of a close frame's reason (RFC 6455, 5.5)."""


class Socket:
    """One connection. `fault`: what broke it, empty where nothing did."""

    def __init__(
        self,
        response: web.WebSocketResponse,
        transport: asyncio.Transport,
        writable: asyncio.Event,
        *,
        send_timeout: float,
    ) -> None:
        """`response`: prepared; it leaves pings to be answered here, and never waits when it sends.
        `writable`: set while what waits to be sent is below the transport's limit, or nothing can be sent any
        more. `send_timeout`: seconds that the other side may take to accept a message; then it is cut off.
        """
        self.fault = ""
        self.round_trip = 0.0
        """Seconds to the other side and back, as last measured; 0 when it has not been."""
        self._response = response
        self._transport = transport
        self._writable = writable
        self._send_timeout = send_timeout
        self._pinged_at = 0.0
        self._closing = False

    async def messages(self) -> AsyncIterator[str | bytes]:
        """What the other side sends, until it closes or is gone."""
        loop = asyncio.get_running_loop()
        try:
            await self._ping()  # its answer is the first measure of the round trip
            while True:
                received = await self._response.receive()
                match received.type:
                    case WSMsgType.TEXT | WSMsgType.BINARY:
                        yield received.data
                        if loop.time() > self._pinged_at + PING_SECONDS:
                            await self._ping()
                    case WSMsgType.PING:
                        await self._write(self._response.pong(received.data))
                    case WSMsgType.PONG:
                        if received.data == self._ping_name():
                            self.round_trip = loop.time() - self._pinged_at
                    case _:
                        self._end(received)
                        return
        except PeerGone as gone:
            self._blame(gone)

    async def send(self, message: str | bytes) -> None:
        """Raises PeerGone when the connection is closed, or the message was not taken in time: then the
        connection is cut off."""
        if isinstance(message, str):
            await self._write(self._response.send_str(message))
        else:
            await self._write(self._response.send_bytes(message))

    async def close(self, code: int, reason: str) -> None:
        """Close in order; a side that does not answer that in time is cut off."""
        self._closing = True
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._response.close(code=code, message=reason.encode()[:_MOST_REASON])
        except TimeoutError:
            self.abort()
        if self._transport.get_write_buffer_size():  # closing would wait for it to be taken
            self.abort()

    def abort(self) -> None:
        """Cut the connection off; what was not sent is lost."""
        self._transport.abort()

    async def _write(self, sending: Coroutine[Any, Any, None]) -> None:
        """Send, and wait until the other side has taken enough. Raises PeerGone.

        aiohttp's own waiting is one future for all who send: one that is cancelled would cancel the others.
        """
        try:
            await sending
        except ConnectionError as closed:
            raise PeerGone(str(closed)) from None
        if self._writable.is_set():
            return
        try:
            async with asyncio.timeout(self._send_timeout):
                await self._writable.wait()
        except TimeoutError:
            self.fault = f"the other side took no message for {self._send_timeout:g} s"
            self.abort()
            raise PeerGone(self.fault) from None
        if self._transport.is_closing():
            raise PeerGone("the connection was closed before the message was taken")

    async def _ping(self) -> None:
        self._pinged_at = asyncio.get_running_loop().time()
        await self._write(self._response.ping(self._ping_name()))

    def _ping_name(self) -> bytes:
        return f"{self._pinged_at:.6f}".encode()

    def _end(self, received: WSMessage) -> None:
        """Why there is nothing more to read."""
        match received.type:
            case WSMsgType.CLOSE if received.data not in _NORMAL_CODES:
                self._blame(f"the other side closed with {received.data} {received.extra}".rstrip())
            case WSMsgType.ERROR if isinstance(received.data, WebSocketError):
                self._blame(f"closed with {int(received.data.code)}: {received.data}")
            case WSMsgType.ERROR:
                self._blame(received.data)
            case WSMsgType.CLOSED if not self._closing:
                self._blame("no close frame received")

    def _blame(self, reason: object) -> None:
        self.fault = self.fault or f"the connection broke: {reason}"
