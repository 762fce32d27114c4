"""What a broken carrier may send, and what becomes of it: the call goes on or ends once, and the log says
which call it was."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable

import pytest
from websockets.asyncio.client import ClientConnection

from fixtures.virtual_time import run
from pipeline.events import PeerGone
from tests.machine import PATIENCE
from tests.web.phone.served import Served, serving
from tests.web.phone.test_socket import UNSIGNED, opened, receive, until_closed
from tests.web.phone.test_wire import TWILIO_START
from web.sockets import Socket

START = json.dumps(TWILIO_START | {"start": {"streamSid": "MZ1"}})
SECOND_START = json.dumps(TWILIO_START | {"streamSid": "MZ2", "start": {"streamSid": "MZ2"}})
MEDIA = '{"event":"media","streamSid":"MZ1","media":{"payload":"/////w=="}}'
STOP = '{"event":"stop","streamSid":"MZ1"}'


def _with_socket(act: Callable[[ClientConnection], Awaitable[None]]) -> Served:
    async def talk() -> Served:
        async with serving(UNSIGNED) as served:
            async with opened(served, "/phone/twilio") as socket:
                await act(socket)
            async with asyncio.timeout(PATIENCE):
                await served.over.wait()
            assert served.switchboard.running == 0
            return served

    return asyncio.run(talk())


def _media(payload: object) -> str:
    return json.dumps({"event": "media", "streamSid": "MZ1", "media": {"payload": payload}})


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("{", "not JSON: '{'"),
        ("[1]", "not a JSON object"),
        ("[" * 50_000, "not JSON"),
        (b"\0\1", "a binary message of 2 bytes where text is spoken"),
        (START, "a second start on one socket; the first goes on"),
        (SECOND_START, "a second start on one socket; the first goes on"),
        (MEDIA.replace("MZ1", "MZ2"), "'media' of a stream that has not started"),
        ('{"event":"media","streamSid":"MZ1"}', "'media' without 'media'"),
        ('{"event":"media","streamSid":"MZ1","media":{}}', "media without a payload"),
        (_media("?"), "a payload that is not base64"),
        (_media(7), "a payload that is not base64"),
        (_media(base64.b64encode(bytes(100_000)).decode()), "100000 bytes of audio in one message"),
    ],
)
def test_a_message_that_makes_no_sense_is_logged_and_the_call_goes_on(
    message: str | bytes, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(socket: ClientConnection) -> None:
        await socket.send(START)
        await socket.send(message)
        await socket.send(MEDIA)
        await receive(socket, "media")
        await socket.send(STOP)
        assert await until_closed(socket) == 1000

    served = _with_socket(act)
    assert len(served.service.opened) == 1
    assert f"call {served.service.opened[0].id}: twilio: {said}" in caplog.text


def test_unknown_events_are_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    async def act(socket: ClientConnection) -> None:
        for message in (START, '{"event":"weather"}', '{"event":["media"]}', "{}"):
            await socket.send(message)
        await receive(socket, "media")

    assert len(_with_socket(act).service.opened) == 1
    assert caplog.text == ""


def test_much_nonsense_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def act(socket: ClientConnection) -> None:
        for message in (START, *["{"] * 50, STOP):
            await socket.send(message)
        await until_closed(socket)

    call = _with_socket(act).service.opened[0].id
    assert len(caplog.records) == 4
    assert f"call {call}: twilio: 50 messages not understood" in caplog.text


def test_a_stream_that_stops_before_it_starts(caplog: pytest.LogCaptureFixture) -> None:
    async def act(socket: ClientConnection) -> None:
        await socket.send('{"event":"connected"}')
        await socket.send('{"event":"stop"}')
        assert await until_closed(socket) == 1008

    assert _with_socket(act).service.opened == []


def test_media_before_the_start_is_not_heard(caplog: pytest.LogCaptureFixture) -> None:
    async def act(socket: ClientConnection) -> None:
        await socket.send('{"event":"media","media":{"payload":"/////w=="}}')
        await socket.send(START)
        await receive(socket, "media")

    assert len(_with_socket(act).service.opened) == 1
    assert "call (not begun): twilio: heard before the start" in caplog.text


def test_stop_twice_is_one_end() -> None:
    async def act(socket: ClientConnection) -> None:
        await socket.send(START)
        await receive(socket, "media")
        await socket.send(STOP)
        await socket.send(STOP)
        assert await until_closed(socket) == 1000

    assert len(_with_socket(act).service.opened) == 1


def test_gaps_in_the_numbers_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def act(socket: ClientConnection) -> None:
        await socket.send(START)
        payload = base64.b64encode(b"\xff" * 160).decode()
        for number in (1, 2, 6, 7, 8, 9, 4):
            media = {"chunk": str(number), "timestamp": str(20 * (number - 1)), "payload": payload}
            await socket.send(json.dumps({"event": "media", "streamSid": "MZ1", "media": media}))
        await socket.send(STOP)
        await until_closed(socket)

    caplog.set_level("INFO", "rejoinder.phone")
    call = _with_socket(act).service.opened[0].id
    assert f"call {call}: 1 frames came too late, 3 were lost" in caplog.text


def test_a_message_of_more_than_a_megabyte_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def act(socket: ClientConnection) -> None:
        await socket.send(START)
        await socket.send("x" * (1 << 20) + "x")
        assert await until_closed(socket) == 1009

    call = _with_socket(act).service.opened[0].id
    assert f"call {call}: the connection broke: closed with 1009" in caplog.text


def test_a_socket_that_is_cut_off_ends_the_call(caplog: pytest.LogCaptureFixture) -> None:
    async def act(socket: ClientConnection) -> None:
        await socket.send(START)
        await receive(socket, "media")
        socket.transport.abort()

    call = _with_socket(act).service.opened[0].id
    assert f"call {call}: the connection broke: no close frame received" in caplog.text


class _HalfDead:
    """A connection whose other end has stopped reading."""

    def __init__(self) -> None:
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True

    async def send_str(self, message: str) -> None:
        """It is taken into the buffer, which is full."""


def test_a_half_dead_socket_is_cut_off() -> None:
    async def send() -> float:
        connection = _HalfDead()
        socket = Socket(connection, connection, asyncio.Event(), send_timeout=5.0)  # type: ignore[arg-type]
        with pytest.raises(PeerGone, match="5 s"):
            await socket.send("x")
        assert connection.aborted
        assert socket.fault == "the other side took no message for 5 s"
        return asyncio.get_running_loop().time()

    assert run(send()) == pytest.approx(5.0)
