"""A carrier's stream to its end: audio cut anywhere, audio in lumps, and what must not wait behind it."""

from __future__ import annotations

import asyncio
import base64
import json

import numpy as np
import pytest

from pipeline.audio import float_to_pcm16
from pipeline.call import Call
from tests.web.phone.served import serving
from tests.web.phone.test_audiosocket import CALL, Asterisk, read_packet
from tests.web.phone.test_broken_carriers import START, STOP
from tests.web.phone.test_socket import UNSIGNED, opened, receive, until_closed

VONAGE = json.dumps({"event": "websocket:connected", "content-type": "audio/l16;rate=16000", "uuid": "u"})
ASTERISK = json.dumps({"event": "MEDIA_START", "connection_id": "c", "channel_id": "1", "format": "slin16"})
LINEAR = {"vonage": VONAGE, "asterisk": ASTERISK}


def at_once() -> asyncio.Timeout:
    """Far less than the audio that waits, far more than a busy machine needs."""
    return asyncio.timeout(5.0)


def media(seconds: float) -> str:
    payload = base64.b64encode(b"\xff" * round(8000 * seconds)).decode()
    return json.dumps({"event": "media", "streamSid": "MZ1", "media": {"payload": payload}})


def listen_in(call: Call) -> list[np.ndarray]:
    """What the call hears from now on."""
    heard: list[np.ndarray] = []
    hear = call._microphone.hear

    def note(audio: np.ndarray) -> None:
        heard.append(audio)
        hear(audio)

    call._microphone.hear = note  # type: ignore[method-assign]
    return heard


def tone(seconds: float) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * 300 * np.arange(round(seconds * 16_000)) / 16_000)).astype(np.float32)


@pytest.mark.parametrize("sizes", [(641, 639), (1,), (319, 320, 321)])
@pytest.mark.parametrize("carrier", sorted(LINEAR))
def test_linear_audio_may_be_cut_inside_a_sample(carrier: str, sizes: tuple[int, ...]) -> None:
    audio = tone(0.3)
    pcm = float_to_pcm16(audio)

    async def talk() -> None:
        async with serving(UNSIGNED) as served, opened(served, f"/phone/{carrier}") as socket:
            await socket.send(LINEAR[carrier])
            await socket.recv()
            heard = listen_in(served.service.opened[0])
            start, number = 0, 0
            while start < len(pcm):
                size = sizes[number % len(sizes)]
                await socket.send(pcm[start : start + size])
                start, number = start + size, number + 1
            async with at_once():
                while sum(piece.size for piece in heard) < audio.size:
                    await socket.recv()  # the greeting goes on meanwhile
            np.testing.assert_allclose(np.concatenate(heard), audio, atol=1e-4)

    asyncio.run(talk())


@pytest.mark.parametrize(
    "media_of_the_message",
    [{"payload": ""}, {"payload": "?"}, {"payload": "/////w==", "track": "outbound"}, {}],
)
def test_a_line_without_audio_says_so_once(
    media_of_the_message: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    message = json.dumps({"event": "media", "streamSid": "MZ1", "media": media_of_the_message})

    async def talk() -> str:
        async with serving(UNSIGNED) as served:
            async with opened(served, "/phone/twilio") as socket:
                await socket.send(START)
                for _ in range(250):
                    await socket.send(message)
                await socket.send(STOP)
                assert await until_closed(socket) == 1000
            return served.service.opened[0].id

    call = asyncio.run(talk())
    said = [record.getMessage() for record in caplog.records if "no audio" in record.getMessage()]
    assert said == [f"call {call}: twilio: no audio of the caller in the first 100 messages"]
    assert len(caplog.records) <= 5


def test_a_line_with_audio_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def talk() -> None:
        async with serving(UNSIGNED) as served, opened(served, "/phone/twilio") as socket:
            await socket.send(START)
            for _ in range(120):
                await socket.send(media(0.02))
            await socket.send(STOP)
            assert await until_closed(socket) == 1000

    asyncio.run(talk())
    assert caplog.text == ""


def test_a_stop_does_not_wait_for_the_audio_before_it() -> None:
    async def talk() -> None:
        async with serving(UNSIGNED) as served, opened(served, "/phone/twilio") as socket:
            await socket.send(START)
            for _ in range(20):
                await socket.send(media(1.0))
            await socket.send(STOP)
            async with at_once():
                assert await until_closed(socket) == 1000
                await served.over.wait()

    asyncio.run(talk())


def test_keys_and_marks_do_not_wait_for_the_audio_before_them() -> None:
    async def talk() -> None:
        async with serving(UNSIGNED) as served, opened(served, "/phone/twilio") as socket:
            await socket.send(START)
            mark = await receive(socket, "mark")
            told: asyncio.Queue[str] = asyncio.Queue()
            call = served.service.opened[0]
            call.digit = told.put_nowait  # type: ignore[method-assign]
            call.playback = lambda reply, ms: told.put_nowait("played")  # type: ignore[method-assign]
            for _ in range(20):
                await socket.send(media(1.0))
            await socket.send('{"event":"dtmf","streamSid":"MZ1","dtmf":{"digit":"5"}}')
            await socket.send(json.dumps(mark))
            async with at_once():
                assert [await told.get(), await told.get()] == ["5", "played"]

    asyncio.run(talk())


def test_more_audio_than_may_wait_is_lost_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def talk() -> None:
        async with serving(UNSIGNED) as served, opened(served, "/phone/twilio") as socket:
            await socket.send(START)
            for _ in range(70):
                await socket.send(media(5.0))
            await socket.send(STOP)
            assert await until_closed(socket) == 1000

    asyncio.run(talk())
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert "twilio sends faster than speech" in said[0]
    assert said[1].endswith("s of audio lost")


@pytest.mark.parametrize("packet", [b"\x00\x00\x00", b""])
def test_asterisks_hang_up_does_not_wait_for_the_audio_before_it(packet: bytes) -> None:
    """By its packet, or by the end of the connection."""

    async def talk() -> None:
        async with Asterisk() as asterisk:
            asterisk.writer.write(b"\x01\x00\x10" + CALL.bytes)
            await read_packet(asterisk.reader)
            asterisk.writer.write((b"\x10\x01\x40" + b"\0" * 320) * 1000 + packet)
            asterisk.writer.write_eof()
            async with at_once():
                while await asterisk.reader.read(1000):
                    pass
            assert asterisk.switchboard.running == 0

    asyncio.run(talk())
