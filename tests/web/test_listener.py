"""The port itself, byte by byte: what is read as a request, what is refused, and who may hold on to what."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from http import HTTPStatus

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from pipeline.config import Settings
from tests.web.scripted import PATIENCE, calling, on_loop, serving
from web.listener import MOST_BODY, Listener
from web.routes import PageHandler, Request, Response, Routes, SocketHandler, respond_text
from web.server import Server
from web.sockets import Socket

FORM = b"CallSid=CA1&From=%2B15550100123"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[Server]:
    server = Server(Settings(port=0, phone_unsigned=True))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@contextlib.asynccontextmanager
async def listening(routes: Routes) -> AsyncIterator[int]:
    """A port with these routes alone."""
    port_of = Listener(routes, max_message_bytes=1 << 20, send_timeout=5.0)
    port = await port_of.start("127.0.0.1", 0)
    try:
        yield port
    finally:
        await port_of.stop()


@contextlib.asynccontextmanager
async def serving_only(page: PageHandler) -> AsyncIterator[int]:
    """A port whose /healthz is a page of the test's."""
    routes = Routes()
    routes.page("/healthz", page)
    async with listening(routes) as port:
        yield port


@contextlib.asynccontextmanager
async def socket_of(handler: SocketHandler) -> AsyncIterator[ClientConnection]:
    """A client whose socket a handler of the test's serves."""
    routes = Routes()
    routes.socket("/", handler, admit=lambda request: None)
    async with listening(routes) as port, connect(f"ws://127.0.0.1:{port}/", proxy=None) as client:
        yield client


async def talk(port: int, *pieces: bytes) -> bytes:
    """Send the pieces, one packet each, and read until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(PATIENCE):
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        answer = await reader.read()
    writer.close()
    return answer


async def exchange(*pieces: bytes) -> tuple[int, bytes]:
    """The answer's status and body; 0 where there is none."""
    async with running() as server:
        head, _, body = (await talk(server.port, *pieces)).partition(b"\r\n\r\n")
    return (int(head.split()[1]) if head else 0), body


def post(*headers: str, body: bytes = b"", path: str = "/phone/twilio/voice") -> bytes:
    lines = (f"POST {path} HTTP/1.1", "Host: agent.example.com", "Connection: close", *headers)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def form(body: bytes = FORM, path: str = "/phone/twilio/voice") -> bytes:
    headers = ("Content-Type: application/x-www-form-urlencoded", f"Content-Length: {len(body)}")
    return post(*headers, body=body, path=path)


# ---- requests


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


CHUNKED = (
    "Content-Type: application/x-www-form-urlencoded",
    "Transfer-Encoding: chunked",
)
CHUNKS = b"14\r\nCallSid=CA1&From=%2B\r\nb\r\n15550100123\r\n0\r\n\r\n"


@on_loop
async def test_a_chunked_form_is_read() -> None:
    status, body = await exchange(post(*CHUNKED, body=CHUNKS))
    assert (status, b"+15550100123" in body) == (200, True)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (post(), 200),
        (post("content-length: 0"), 200),
        (form(b"a=" + b"b" * (MOST_BODY - 2)), 200),
        (form(b"a=" + b"b" * (MOST_BODY - 1)), 413),
        (post(*CHUNKED, body=b"%x\r\n" % (MOST_BODY + 1) + b"b" * (MOST_BODY + 1) + b"\r\n0\r\n\r\n"), 413),
        (post("Content-Length: -1"), 400),
        (post("Content-Length: 4", "Content-Length: 5", body=b"a=bcd"), 400),
        (post("Content-Length: 50", "Transfer-Encoding: chunked", body=CHUNKS), 400),
        (form(path="/"), 405),
        (form(path="/v1/realtime"), 405),
        (form(path="/nowhere"), 405),
        (post("x: " + "y" * 20_000), 400),
        (post(*(f"x-{number}: y" for number in range(200))), 400),
        (post(*CHUNKED, body=b"x\r\n"), 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
        (b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    ],
)
@on_loop
async def test_every_request_is_answered_once(request_: bytes, status: int) -> None:
    answered, body = await exchange(request_)
    assert answered == status
    assert b"HTTP/1.1" not in body


@on_loop
async def test_a_connection_is_kept_for_the_next_request() -> None:
    first = form().replace(b"Connection: close\r\n", b"")
    async with running() as server:
        answers = await talk(server.port, first, form(b"From=%2B2"))
    assert answers.count(b"HTTP/1.1 200 OK\r\n") == 2
    assert answers.index(b'value="+15550100123"') < answers.index(b'value="+2"')


@on_loop
async def test_a_request_that_breaks_off_is_not_answered(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(form()[:-5])
        writer.write_eof()
        async with asyncio.timeout(PATIENCE):
            assert await reader.read() == b""
        writer.close()
    assert not caplog.text


@pytest.mark.parametrize("request_", [HEALTH, b"nonsense\r\n\r\n"])
@on_loop
async def test_no_answer_tells_what_runs_here(request_: bytes) -> None:
    async with running() as server:
        answer = (await talk(server.port, request_)).lower()
    assert b"server: rejoinder\r\n" in answer
    assert b"x-content-type-options: nosniff\r\n" in answer
    assert b"aiohttp" not in answer
    assert b"python" not in answer


@pytest.mark.parametrize("sent", ["é€".encode(), "é".encode("latin-1")])
@on_loop
async def test_a_header_is_read_as_it_was_written(sent: bytes) -> None:
    heard: list[Request] = []

    async def page(request: Request) -> Response:
        heard.append(request)
        return respond_text("")

    async with serving_only(page) as port:
        await talk(port, HEALTH.replace(b"localhost\r\n", b"localhost\r\nX-Name: " + sent + b"\r\n"))
    assert heard[0].all("x-name") == ["é€" if len(sent) > 1 else "é"]


@on_loop
async def test_a_fault_of_ours_is_an_answer_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    async def page(request: Request) -> Response:
        raise RuntimeError("the secret")

    async with serving_only(page) as port:
        answer = await talk(port, HEALTH)
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert b"secret" not in answer
    assert "RuntimeError: the secret" in caplog.text


# ---- sockets


@pytest.mark.parametrize("offered", [["openai-insecure-api-key.sesame"], ["chat", "realtime"]])
@on_loop
async def test_what_is_offered_is_neither_echoed_nor_logged(
    offered: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    async with serving() as (server, _), calling(server, subprotocols=offered) as client:
        await client.receive("session.created")
        assert client.socket.subprotocol == ("realtime" if "realtime" in offered else None)
        assert "sesame" not in str(client.socket.response)
    assert "sesame" not in caplog.text


@pytest.mark.parametrize(
    ("header", "value"),
    [("Sec-WebSocket-Key", "short"), ("Sec-WebSocket-Version", "12"), ("Connection", "x")],
)
@on_loop
async def test_a_wrong_handshake_is_refused(header: str, value: str) -> None:
    fields = {
        "Host": "localhost",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "Sec-WebSocket-Version": "13",
    } | {header: value}
    lines = ["GET /v1/realtime HTTP/1.1", *(f"{name}: {said}" for name, said in fields.items())]
    async with serving() as (server, service):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
        async with asyncio.timeout(PATIENCE):
            assert (await reader.readline()).split()[1] == b"400"
        writer.close()
        assert not service.opened


@on_loop
async def test_a_socket_whose_handler_fails_is_closed_with_1011(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(socket: Socket, request: Request) -> None:
        raise RuntimeError("broken")

    async with socket_of(fail) as client:
        await client.wait_closed()
        assert client.close_code == 1011
    assert "RuntimeError: broken" in caplog.text


@on_loop
async def test_stopping_closes_sockets_that_no_call_owns() -> None:
    async with running() as server:
        client = await connect(f"ws://127.0.0.1:{server.port}/phone/twilio", proxy=None)
        await server.stop()
        await client.wait_closed()
        assert client.close_code == 1001


@on_loop
async def test_closing_is_no_fault() -> None:
    served: asyncio.Future[Socket] = asyncio.get_running_loop().create_future()

    async def leave(socket: Socket, request: Request) -> None:
        async for _ in socket.messages():
            await socket.close(1000, "done")
        served.set_result(socket)

    async with socket_of(leave) as client:
        await client.send("go")
        assert (await asyncio.wait_for(served, PATIENCE)).fault == ""


@on_loop
async def test_the_round_trip_is_measured() -> None:
    measured: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def listen(socket: Socket, request: Request) -> None:
        async for _ in socket.messages():
            measured.set_result(socket.round_trip)

    async with socket_of(listen) as client:
        await (await client.ping())  # behind its answer to the server's own
        await client.send("now")
        assert 0 < await asyncio.wait_for(measured, PATIENCE) < PATIENCE


@on_loop
async def test_refused_handshakes_are_answers_too() -> None:
    async with running() as server:
        for _ in range(3):
            with pytest.raises(InvalidStatus) as refused:
                await connect(f"ws://127.0.0.1:{server.port}/phone/vonage/nowhere", proxy=None)
            assert refused.value.response.status_code == HTTPStatus.NOT_FOUND
            assert refused.value.response.body == b"there is nothing at /phone/vonage/nowhere\n"
