"""Asterisk's AudioSocket: a TCP connection of packets (one byte of type, two of length, the payload).

The protocol has no playback control and no authentication. So the frames are paced and held here, where they
can be paused, cleared and marked, and the listener is for Asterisk on the same machine: it binds to the
loopback address.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from enum import IntEnum

from pipeline.events import PeerGone
from web.phone.bridge import PhoneFrontEnd
from web.phone.encodings import FRAME_SECONDS, Encoding
from web.phone.player import Player
from web.phone.wire import (
    BadMessage,
    Carrier,
    Heard,
    Inbound,
    Message,
    Played,
    Pressed,
    Problem,
    Started,
    Stopped,
)


class Kind(IntEnum):
    """A packet's type."""

    HANG_UP = 0x00
    UUID = 0x01
    DTMF = 0x03
    AUDIO = 0x10  # 16-bit linear at 8 kHz
    ERROR = 0xFF


_HEADER = 3
_LINEAR = Encoding("l16", 8000)


def packet(kind: Kind, payload: bytes = b"") -> bytes:
    """One packet; the payload has at most 65535 bytes."""
    return bytes([kind]) + len(payload).to_bytes(2, "big") + payload


class AudioSocket(Carrier):
    """Binary messages are packets; what the protocol lacks is asked of the line in text."""

    name = "audiosocket"
    holds_playback = True

    def read(self, message: Message) -> Inbound | None:
        if isinstance(message, str):
            return Played(message)
        kind, payload = message[0], message[_HEADER:]
        match kind:
            case Kind.UUID:
                return _start(payload)
            case Kind.AUDIO:
                return Heard(payload)
            case Kind.DTMF:
                return Pressed(payload.decode("ascii", "replace"))
            case Kind.HANG_UP:
                return Stopped()
            case Kind.ERROR:
                return Problem(f"error {payload.hex()}")
        return None

    def audio(self, frame: bytes) -> Message:
        return packet(Kind.AUDIO, frame)

    def mark(self, name: str) -> list[Message]:
        return [f"mark {name}"]

    def clear(self) -> list[Message]:
        return ["clear"]

    def pause(self) -> list[Message]:
        return ["pause"]

    def resume(self) -> list[Message]:
        return ["resume"]

    def hang_up(self) -> list[Message]:
        return [packet(Kind.HANG_UP)]


def _lost(error: OSError) -> str:
    """What is logged; an error without words is our own waiting that is over."""
    return f"the connection is lost: {str(error) or 'nothing was read from it'}"


def _start(payload: bytes) -> Started:
    if len(payload) != 16:
        raise BadMessage(f"a UUID of {len(payload)} bytes")
    call = str(uuid.UUID(bytes=payload))
    return Started(stream_id=call, call_id=call, hears=_LINEAR, speaks=_LINEAR)


class AudioSocketLine:
    """The connection as the bridge's line: paces audio packets, and gives the marks back as messages."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, send_timeout: float = 5.0
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._send_timeout = send_timeout
        self._player = Player()
        self._inbox: asyncio.Queue[Message | None] = asyncio.Queue(maxsize=500)
        self.fault = ""
        self._gone = False

    async def run(self, serve: PhoneFrontEnd) -> None:
        """Serve the connection until it is over."""
        reading = asyncio.create_task(self._read())
        playing = asyncio.create_task(self._play())
        try:
            await serve.serve(self, AudioSocket())
        finally:
            reading.cancel()
            playing.cancel()
            await asyncio.wait([reading, playing])
            self._writer.close()

    @property
    def round_trip(self) -> float:
        """None: the frames are held here until they play."""
        return 0.0

    async def messages(self) -> AsyncIterator[Message]:
        while (message := await self._inbox.get()) is not None:
            yield message

    async def send(self, message: Message) -> None:
        if self._gone:
            raise PeerGone("the connection is closed")
        if isinstance(message, str):
            self._control(message)
        elif message[0] == Kind.AUDIO:
            self._player.put(message)
        else:
            await self._write(message)

    async def close(self, code: int, reason: str) -> None:
        """AudioSocket has neither codes nor reasons."""
        self._gone = True
        self._writer.close()

    def _control(self, message: str) -> None:
        command, _, name = message.partition(" ")
        match command:
            case "mark":
                self._player.mark(name)
            case "clear":
                self._player.clear()
                self._player.paused = False
            case "pause":
                self._player.paused = True
            case "resume":
                self._player.paused = False

    async def _read(self) -> None:
        try:
            while True:
                header = await self._reader.readexactly(_HEADER)
                payload = await self._reader.readexactly(int.from_bytes(header[1:], "big"))
                await self._inbox.put(header + payload)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # that is how Asterisk hangs up
        except OSError as error:
            self.fault = _lost(error)
        self._gone = True
        await self._inbox.put(None)

    async def _play(self) -> None:
        """A frame every 20 ms, by absolute deadlines."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while not self._gone:
            frame = self._player.tick()
            if frame is not None:
                try:
                    await self._write(frame)
                except PeerGone:
                    await self._inbox.put(None)
                    return
            due = max(due + FRAME_SECONDS, loop.time() - FRAME_SECONDS)
            await asyncio.sleep(due - loop.time())
            for name in self._player.passed():
                await self._inbox.put(name)

    async def _write(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            async with asyncio.timeout(self._send_timeout):
                await self._writer.drain()
        except OSError as error:
            self._gone = True
            self._writer.transport.abort()
            self.fault = _lost(error)
            raise PeerGone(self.fault) from None


class AudioSocketListener:
    """The TCP server."""

    def __init__(self, front_end: PhoneFrontEnd, *, send_timeout: float = 5.0) -> None:
        self._front_end = front_end
        self._send_timeout = send_timeout
        self._server: asyncio.Server | None = None

    async def start(self, port: int) -> None:
        """Listen on the loopback address. Raises OSError."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", port)

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await AudioSocketLine(reader, writer, send_timeout=self._send_timeout).run(self._front_end)
