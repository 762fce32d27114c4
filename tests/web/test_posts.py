"""Requests with a body on the port of the websockets, byte by byte as the network may bring them."""

from __future__ import annotations

import asyncio

import pytest

from pipeline.config import Settings
from tests.machine import PATIENCE
from tests.web.scripted import on_loop
from web.posts import MOST_BODY
from web.server import Server

FORM = b"CallSid=CA1&From=%2B15550100123"


async def exchange(*pieces: bytes) -> tuple[int, bytes]:
    """Send the pieces of a request, one packet each; the answer's status and body."""
    server = Server(Settings(port=0, phone_unsigned=True))
    await server.start()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        async with asyncio.timeout(PATIENCE):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
    finally:
        await server.stop()
    return (int(head.split()[1]) if head else 0), body


def post(*headers: str, body: bytes = b"", path: str = "/phone/twilio/voice") -> bytes:
    lines = (f"POST {path} HTTP/1.1", "Host: agent.example.com", *headers)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def form(body: bytes = FORM, path: str = "/phone/twilio/voice") -> bytes:
    headers = ("Content-Type: application/x-www-form-urlencoded", f"Content-Length: {len(body)}")
    return post(*headers, body=body, path=path)


@on_loop
async def test_a_posted_form_is_read() -> None:
    status, body = await exchange(form())
    assert status == 200
    assert b'<Parameter name="caller" value="+15550100123"/>' in body


@pytest.mark.parametrize("size", [1, 7, 150])
@on_loop
async def test_in_pieces_of_any_size(size: int) -> None:
    whole = form()
    status, body = await exchange(*(whole[at : at + size] for at in range(0, len(whole), size)))
    assert (status, b"+15550100123" in body) == (200, True)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (post(), 200),
        (post("content-length: 0"), 200),
        (form(b"a=" + b"b" * (MOST_BODY - 2)), 200),
        (form(b"a=" + b"b" * (MOST_BODY - 1)), 413),
        (post("Content-Length: 999999999999"), 400),
        (post("Content-Length: -1"), 400),
        (post("Content-Length: 4", "Content-Length: 5", body=b"a=bcd"), 400),
        (post("Transfer-Encoding: chunked", body=b"3\r\na=b\r\n0\r\n\r\n"), 411),
        (post("Content-Length: 5", "Transfer-Encoding: chunked", body=b"3\r\na=b\r\n0\r\n\r\n"), 411),
        (form(path="/"), 405),
        (form(path="/v1/realtime"), 405),
        (form(path="/nowhere"), 405),
        (post("x: " + "y" * 20_000), 431),
        (form() + form(), 200),
    ],
)
@on_loop
async def test_every_request_is_answered_once(request_: bytes, status: int) -> None:
    answered, body = await exchange(request_)
    assert answered == status
    assert b"HTTP/1.1" not in body


@on_loop
async def test_a_request_that_breaks_off_is_not_answered() -> None:
    server = Server(Settings(port=0, phone_unsigned=True))
    await server.start()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(form()[:-5])
        writer.write_eof()
        async with asyncio.timeout(PATIENCE):
            assert await reader.read() == b""
        writer.close()
    finally:
        await server.stop()
