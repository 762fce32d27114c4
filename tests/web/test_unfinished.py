"""Clients that hold on to a connection without using it: how long they may, and that they keep nobody out."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tests.web.scripted import PATIENCE, calling, on_loop, serving
from tests.web.test_listener import HEALTH, form, running, serving_only, talk
from web import listener
from web.routes import Request, Response, respond


@pytest.mark.parametrize("begun", [b"", b"GET / HTT", HEALTH[:-2]])
@on_loop
async def test_headers_that_do_not_end_are_not_waited_for(
    begun: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "HEADER_SECONDS", 0.05)
    async with running() as server:
        assert await talk(server.port, begun) == b""


@on_loop
async def test_a_connection_that_is_kept_has_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "HEADER_SECONDS", 0.05)
    async with running() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        async with asyncio.timeout(PATIENCE):
            writer.write(HEALTH.replace(b"Connection: close\r\n", b""))
            assert (await reader.readuntil(b"}\n")).startswith(b"HTTP/1.1 200 ")
            assert await talk(server.port, b"GET / HTT") == b""  # a newer one's time is over
            writer.write(HEALTH)
            assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
        writer.close()


@pytest.mark.parametrize("seconds", ["HEADER_SECONDS", "KEEP_ALIVE_SECONDS"])
@on_loop
async def test_an_idle_connection_is_closed(seconds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, seconds, 0.05)
    first = HEALTH.replace(b"Connection: close\r\n", b"") if seconds == "KEEP_ALIVE_SECONDS" else b""
    async with running() as server:
        assert (await talk(server.port, first)).count(b"HTTP/1.1 200 ") == len(first[:1])


@on_loop
async def test_dribbling_does_not_earn_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "HEADER_SECONDS", 0.2)
    async with running() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(HEALTH[:-2])

        async def dribble() -> None:
            while True:
                writer.write(b"x: y\r\n")
                await asyncio.sleep(0.02)

        dribbling = asyncio.create_task(dribble())
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
        dribbling.cancel()
        await asyncio.wait([dribbling])
        writer.close()


@on_loop
async def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "REQUEST_SECONDS", 0.05)
    async with running() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(form()[:-5])
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
        writer.close()


@on_loop
async def test_an_answer_that_is_not_taken_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "REQUEST_SECONDS", 0.2)

    async def page(request: Request) -> Response:
        return respond(bytes(1 << 25), "application/octet-stream")

    lost = asyncio.Event()
    connection_lost = listener._Connection.connection_lost

    def note(self: listener._Connection, error: BaseException | None) -> None:
        connection_lost(self, error)
        lost.set()

    monkeypatch.setattr(listener._Connection, "connection_lost", note)
    async with serving_only(page) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 10)
        writer.write(HEALTH)
        async with asyncio.timeout(PATIENCE):
            await lost.wait()
            received = 0
            with contextlib.suppress(ConnectionError):
                while piece := await reader.read(1 << 16):
                    received += len(piece)
        assert received < 1 << 25
        writer.close()


@on_loop
async def test_connections_that_are_not_used_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "MOST_UNFINISHED", 8)
    async with serving() as (server, service), calling(server) as client:
        await client.receive("session.created")
        held = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(30)]
        for _, writer in held:
            writer.write(b"GET / HTTP/1.1\r\n")
        assert (await talk(server.port, HEALTH)).startswith(b"HTTP/1.1 200 ")
        async with calling(server) as second:
            await second.receive("session.created")
        for reader, _ in held[:20]:
            async with asyncio.timeout(PATIENCE):
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
        await client.append(bytes(960))  # a call is not among those that are cut off
        await service.opened[0].until_told("hear")
        for _, writer in held:
            writer.close()


@on_loop
async def test_pings_whose_answers_are_not_taken_do_not_pile_up() -> None:
    """A hostile client asks without end and reads nothing."""
    async with (
        serving(send_timeout_seconds=0.2) as (server, service),
        calling(server, close_timeout=0.1) as client,
    ):
        await client.receive("session.created")
        transport = client.socket.transport
        transport.pause_reading()
        frame = b"\x89\xfd" + bytes(4) + bytes(125)  # a ping, masked with zeros
        async with asyncio.timeout(PATIENCE):
            while not transport.is_closing() and not service.opened[0].over:
                transport.write(frame * 1000)
                await asyncio.sleep(0)
        await service.opened[0].until_told("over")
        assert service.opened[0].end_reason == "peer_gone"
        transport.abort()
