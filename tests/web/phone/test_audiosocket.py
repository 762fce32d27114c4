"""Asterisk's AudioSocket over a real TCP connection: the carrier's side is written out here."""

from __future__ import annotations

import asyncio
import errno
import os
import uuid

import pytest

from tests.machine import PATIENCE
from tests.web.phone.served import greeting_service, phone_settings, serving
from web.phone.audiosocket import AudioSocketLine, AudioSocketListener
from web.phone.bridge import PhoneFrontEnd
from web.phone.player import Player
from web.switchboard import Switchboard

CALL = uuid.UUID("40325ec2-5efd-4bd3-805f-53576e581d13")


async def read_packet(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    async with asyncio.timeout(PATIENCE):
        header = await reader.readexactly(3)
        return header[0], await reader.readexactly(int.from_bytes(header[1:], "big"))


class Asterisk:
    """A listener with a service behind it, and a connection to it."""

    async def __aenter__(self) -> Asterisk:
        self.service = greeting_service()
        self.switchboard = Switchboard()
        self.switchboard.service = self.service  # type: ignore[assignment]
        self.listener = AudioSocketListener(PhoneFrontEnd(self.switchboard))
        await self.listener.start(0)
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.listener.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()
        await self.switchboard.hang_up_all(PATIENCE)
        await self.listener.stop()


def test_the_greeting_comes_in_frames_of_20_ms() -> None:
    async def talk() -> None:
        async with Asterisk() as asterisk:
            asterisk.writer.write(b"\x01\x00\x10" + CALL.bytes)
            asterisk.writer.write(b"\x10\x01\x40" + b"\0" * 320)
            times = []
            for _ in range(8):
                kind, payload = await read_packet(asterisk.reader)
                times.append(asyncio.get_running_loop().time())
                assert (kind, len(payload)) == (0x10, 320)
            assert any(payload)
            assert asterisk.service.opened[0]._origin == "audiosocket"

    asyncio.run(talk())


def test_a_hang_up_packet_ends_the_call() -> None:
    async def talk() -> None:
        async with Asterisk() as asterisk:
            asterisk.writer.write(b"\x01\x00\x10" + CALL.bytes)
            await read_packet(asterisk.reader)
            asterisk.writer.write(b"\x00\x00\x00")
            async with asyncio.timeout(PATIENCE):
                while await asterisk.reader.read(1000):
                    pass
            assert asterisk.switchboard.running == 0

    asyncio.run(talk())


def test_our_end_hangs_up() -> None:
    async def talk() -> None:
        async with Asterisk() as asterisk:
            asterisk.writer.write(b"\x01\x00\x10" + CALL.bytes)
            await read_packet(asterisk.reader)
            asterisk.service.opened[0].hang_up("max_length")
            async with asyncio.timeout(PATIENCE):
                rest = await asterisk.reader.read()
            assert rest.endswith(b"\x00\x00\x00")

    asyncio.run(talk())


@pytest.mark.parametrize("number", [errno.ETIMEDOUT, errno.EHOSTUNREACH])
def test_a_connection_that_is_lost_ends_the_call(number: int, caplog: pytest.LogCaptureFixture) -> None:
    async def talk() -> None:
        service, switchboard = greeting_service(), Switchboard()
        switchboard.service = service  # type: ignore[assignment]
        reader, writer = asyncio.StreamReader(), DeafWriter()
        line = AudioSocketLine(reader, writer)  # type: ignore[arg-type]
        reader.feed_data(b"\x01\x00\x10" + CALL.bytes)
        serving = asyncio.create_task(line.run(PhoneFrontEnd(switchboard)))
        await writer.written.wait()
        reader.set_exception(OSError(number, os.strerror(number)))  # as the transport does
        async with asyncio.timeout(PATIENCE):
            await serving

    asyncio.run(talk())
    assert os.strerror(number) in caplog.text


class DeafWriter:
    """The way out of a connection whose other end is gone."""

    def __init__(self) -> None:
        self.written = asyncio.Event()

    def write(self, data: bytes) -> None:
        self.written.set()

    async def drain(self) -> None:
        """There is always room."""

    def close(self) -> None:
        """Nothing is left to be closed."""


@pytest.mark.parametrize(
    "first",
    [b"\x10\x00\x02\0\0\x00\x00\x00", b"\x01\x00\x02\0\0\x00\x00\x00", b"\xff\x00\x01\x01\x00\x00\x00"],
)
def test_a_connection_that_does_not_begin_with_a_uuid_is_no_call(first: bytes) -> None:
    async def talk() -> None:
        async with Asterisk() as asterisk:
            asterisk.writer.write(first + b"\x00\x00\x00")
            async with asyncio.timeout(PATIENCE):
                assert await asterisk.reader.read(1) == b""
            assert asterisk.service.opened == []

    asyncio.run(talk())


def test_it_listens_where_a_port_is_set() -> None:
    async def talk() -> None:
        with_port = phone_settings(audiosocket_port=_free_port())
        async with serving(with_port):
            reader, writer = await asyncio.open_connection("127.0.0.1", with_port.audiosocket_port)
            writer.write(b"\x01\x00\x10" + CALL.bytes)
            assert (await read_packet(reader))[0] == 0x10
            writer.close()

    asyncio.run(talk())


def _free_port() -> int:
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


# ---- playback by the clock


def test_playback_in_order_with_marks() -> None:
    player = Player()
    player.put(b"a")
    player.mark("1")
    player.put(b"b")
    player.mark("2")
    assert (player.passed(), player.tick(), player.passed()) == ([], b"a", ["1"])
    assert (player.tick(), player.passed(), player.tick()) == (b"b", ["2"], None)


def test_a_pause_keeps_the_place() -> None:
    player = Player()
    player.put(b"a")
    player.mark("1")
    player.paused = True
    assert (player.tick(), player.passed()) == (None, [])
    player.paused = False
    assert (player.tick(), player.passed()) == (b"a", ["1"])


def test_a_clear_tells_the_marks() -> None:
    player = Player()
    player.put(b"a")
    player.mark("1")
    assert (player.clear(), player.tick(), player.frames) == (["1"], None, 0)


def test_the_buffer_is_bounded() -> None:
    player = Player()
    for _ in range(3010):
        player.put(b"a")
    assert (player.frames, player.dropped) == (3000, 10)
