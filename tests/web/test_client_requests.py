"""What clients ask for over the realtime socket: in which order it is done, and what is refused says so."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy as np
import pytest

from pipeline import events
from pipeline.audio import float_to_pcm16
from tests.web.scripted import Client, calling, on_loop, serving, spoken_reply
from web.server import Server

SECOND = 48_000
"""Bytes of the default format."""

OPEN = list(spoken_reply())[:3]
"""An answer that is being said."""


def at_once() -> asyncio.Timeout:
    """Far less than the audio that waits, far more than a busy machine needs."""
    return asyncio.timeout(5.0)


def tone(seconds: float, rate: int = 24_000) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * 300 * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


async def refused(client: Client, kind: str, **fields: Any) -> str:
    """The code with which an event is refused; the error names the event."""
    await client.send(kind, event_id=f"mine_{kind}", **fields)
    error = await client.error()
    assert (error["type"], error["event_id"]) == ("invalid_request_error", f"mine_{kind}")
    return str(error["code"])


def text_item(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


# ---- behind the audio


@pytest.mark.parametrize("kind", ["input_audio_buffer.commit", "response.create"])
@pytest.mark.parametrize("milliseconds", [20, 500, 1200])
@on_loop
async def test_nothing_of_the_audio_before_a_request_is_lost(kind: str, milliseconds: int) -> None:
    pcm = float_to_pcm16(tone(1.2))
    size = SECOND * milliseconds // 1000
    async with serving() as (server, service), calling(server) as client:
        await client.receive("session.created")
        for start in range(0, len(pcm), size):
            await client.append(pcm[start : start + size])
        await client.send(kind)
        await client.append(bytes(SECOND // 10))
        call = service.opened[0]
        _, heard = await call.until_told("respond")
        assert heard == pytest.approx(1.2 * 16_000, abs=2)


@on_loop
async def test_typed_messages_keep_their_place_between_recordings() -> None:
    async with serving() as (server, service), calling(server) as client:
        await client.receive("session.created")
        call = service.opened[0]
        await client.append(bytes(SECOND))
        await client.send("input_audio_buffer.commit")
        await client.send("conversation.item.create", item=text_item("Are you open?"))
        await client.append(bytes(SECOND // 10))
        await client.send("response.create")
        await client.send("input_audio_buffer.commit")
        await call.until_told("say_text")
        kinds = [one for one in call.told if one[0] != "hear"]
        assert [kind for kind, *_ in kinds][:2] == ["respond", "say_text"]
        assert kinds[0][1] == 16_000


@pytest.mark.parametrize("rate", [8_000, 16_000])
@on_loop
async def test_a_new_format_holds_for_the_audio_behind_it(rate: int) -> None:
    """What waits keeps the format in which it came."""
    async with serving() as (server, service), calling(server) as client:
        await client.receive("session.created")
        await client.append(float_to_pcm16(tone(1.0)))
        audio = {"input": {"format": {"type": "audio/pcm", "rate": rate}}}
        async with at_once():
            await client.send("session.update", session={"audio": audio})
            await client.receive("session.updated")
        await client.append(float_to_pcm16(tone(0.5, rate)))
        await client.send("input_audio_buffer.commit")
        call = service.opened[0]
        _, heard = await call.until_told("respond")
        assert heard == pytest.approx(1.5 * 16_000, abs=4)
        power = np.sqrt(np.mean(call.heard.reshape(-1)[200:-200] ** 2))
        assert power == pytest.approx(0.5 / np.sqrt(2), rel=0.03)


@pytest.mark.parametrize("size", [1, 641, 4801])
@on_loop
async def test_a_stream_may_be_cut_inside_a_sample(size: int) -> None:
    audio = tone(0.2)
    pcm = float_to_pcm16(audio)
    async with serving() as (server, service), calling(server) as client:
        await client.receive("session.created")
        format = {"type": "audio/pcm", "rate": 16_000}
        await client.send("session.update", session={"audio": {"input": {"format": format}}})
        for start in range(0, len(pcm), size):
            await client.append(pcm[start : start + size])
        await client.append(b"\1")  # half a sample at the end of a recording
        await client.send("input_audio_buffer.commit")
        call = service.opened[0]
        await call.until_told("respond")
        await client.append(pcm)
        await call.until_heard(0.6)
        np.testing.assert_allclose(call.heard, np.concatenate([audio, audio]), atol=1e-4)


# ---- ahead of the audio


async def with_audio_waiting(server: Server, client: Client, seconds: int = 12) -> None:
    await client.receive("session.created")
    await client.append(bytes(SECOND * seconds))


@on_loop
async def test_what_steers_does_not_wait_for_audio() -> None:
    async with serving() as (server, service), calling(server) as client:
        await with_audio_waiting(server, client)
        call = service.opened[0]
        await client.send("input_audio_buffer.commit")
        async with at_once():
            await call.say(*OPEN)
            item = (await client.receive("response.output_audio.delta"))["item_id"]
            await client.send("rejoinder.playback", item_id=item, played_ms=40)
            await call.until_told("playback", "r1", 40)
            await client.send("conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=60)
            await client.receive("conversation.item.truncated")
            await client.send("session.update", session={})
            await client.receive("session.updated")
            await client.send("response.cancel")
            await call.until_told("cancel_reply")
            assert await refused(client, "input_audio_buffer.append", audio="AAA") == "invalid_base64"
        assert not [one for one in call.told if one[0] == "respond"]


@on_loop
async def test_clear_discards_what_waits() -> None:
    async with serving() as (server, service), calling(server) as client:
        await with_audio_waiting(server, client)
        call = service.opened[0]
        async with at_once():
            await client.send("input_audio_buffer.clear")
            await client.receive("input_audio_buffer.cleared")
            await client.send("input_audio_buffer.commit")
            _, heard = await call.until_told("respond")
        assert heard < 6 * 16_000


@on_loop
async def test_a_minute_in_one_go_neither_breaks_the_line_nor_keeps_it() -> None:
    async with serving(max_message_bytes=1 << 24) as (server, service):
        async with calling(server, ping_interval=0.2, ping_timeout=3.0) as client:
            await with_audio_waiting(server, client, 75)
            async with at_once():
                await (await client.socket.ping())
            await client.socket.close()
        async with at_once():
            await service.opened[0].until_told("over")
        assert service.opened[0].end_reason == "peer_gone"


@on_loop
async def test_more_audio_than_may_wait_is_refused_and_the_rest_is_heard() -> None:
    async with serving(max_message_bytes=1 << 24) as (server, _), calling(server) as client:
        await client.receive("session.created")
        for _ in range(5):
            await client.append(bytes(SECOND * 60))
        code = await refused(client, "input_audio_buffer.append", audio="AAAA" * 4 * SECOND)
        assert code == "input_audio_buffer_full"
        await client.send("input_audio_buffer.clear")
        await client.receive("input_audio_buffer.cleared")
        await client.append(bytes(SECOND))
        await client.send("session.update", session={})
        assert (await client.receive())["type"] == "session.updated", "there is room again"


@on_loop
async def test_events_that_wait_are_bounded() -> None:
    async with serving() as (server, _), calling(server) as client:
        await with_audio_waiting(server, client)
        for _ in range(100):
            await client.send("input_audio_buffer.commit")
        assert await refused(client, "response.create") == "too_many_events_waiting"


# ---- requests that cannot be carried out


@on_loop
async def test_a_commit_of_nothing_says_so() -> None:
    async with serving() as (server, service), calling(server) as client:
        await client.receive("session.created")
        service.opened[0].said = None
        code = "input_audio_buffer_commit_empty"
        assert await refused(client, "input_audio_buffer.commit") == code
        await client.append(bytes(SECOND))
        assert await refused(client, "input_audio_buffer.commit") == code
        await client.append(b"")
        assert await refused(client, "input_audio_buffer.commit") == code


@on_loop
async def test_a_response_to_nothing_says_so() -> None:
    async with serving() as (server, service), calling(server) as client:
        await client.receive("session.created")
        service.opened[0].said = None
        assert await refused(client, "response.create") == "nothing_to_answer"


@on_loop
async def test_a_response_to_what_had_no_words_says_so() -> None:
    async with serving() as (server, service), calling(server) as client:
        await client.receive("session.created")
        call = service.opened[0]
        await client.send("response.create", event_id="mine")
        await call.until_told("respond")
        await call.say(events.SpeechStopped(1, 1, 900), events.TranscriptDone(1, 1, ""))
        error = await client.error()
        assert (error["code"], error["event_id"]) == ("nothing_to_answer", "mine")


@pytest.mark.parametrize("turn", [0, 1])
@on_loop
async def test_a_second_response_says_that_one_is_active(turn: int) -> None:
    """A greeting is one, too."""
    async with serving() as (server, service), calling(server) as client:
        await client.receive("session.created")
        call = service.opened[0]
        call.said = None
        await call.say(*list(spoken_reply(turn=turn))[:3])
        assert await refused(client, "response.create") == "conversation_already_has_active_response"
        await call.say(events.ReplyDone(turn, 1, "r1", "completed", "Yes.", "Yes."))
        assert await refused(client, "response.create") == "nothing_to_answer"


@on_loop
async def test_the_request_for_the_answer_to_a_commit_is_none_for_a_second() -> None:
    async with serving() as (server, service), calling(server) as client:
        await client.receive("session.created")
        call = service.opened[0]
        await client.send("input_audio_buffer.commit")
        await call.until_told("respond")
        call.said = None
        await call.say(*OPEN)
        await client.send("response.create")
        assert await refused(client, "response.create") == "conversation_already_has_active_response"


@pytest.mark.parametrize("text", ["", "  \n\t", "\u200b\u00a0", "\u0301", "\u3164\u2800", "\ue000", "\ufffc"])
@on_loop
async def test_a_blank_message_says_so(text: str) -> None:
    async with serving() as (server, _), calling(server) as client:
        await with_audio_waiting(server, client)
        async with at_once():
            assert await refused(client, "conversation.item.create", item=text_item(text)) == "text_empty"


@pytest.mark.parametrize("part", [{}, {"text": None}, {"text": ""}])
@on_loop
async def test_a_part_without_its_text_is_an_empty_message(part: dict[str, Any]) -> None:
    async with serving() as (server, _), calling(server) as client:
        await client.receive("session.created")
        item = {"type": "message", "role": "user", "content": [{"type": "input_text"} | part]}
        assert await refused(client, "conversation.item.create", item=item) == "text_empty"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (
            '{"type": "response.create", "event_id": "mine", "response": ' + "[" * 300 + "]" * 300 + "}",
            "json",
        ),
        ('{"type": "response.cancel", "event_id": "mine", "response_id": "\\ud83d"}', "json"),
        (b'{"type": "response.cancel", "event_id": "mine"}', "binary_message"),
    ],
)
@on_loop
async def test_what_cannot_be_read_is_refused_by_its_own_name(message: str | bytes, code: str) -> None:
    """An emoji that a client has cut in two; values nested deeper than is read; text in a binary message."""
    async with serving() as (server, _), calling(server) as client:
        await client.receive("session.created")
        await client.socket.send(message)
        error = await client.error()
        assert code in error["code"]
        assert error["event_id"] == "mine"
        await client.socket.send('{"type": "response.cancel", "event_id": "\\ud83d"}')
        assert (await client.error())["event_id"] == "?"


@on_loop
async def test_a_cancel_right_behind_its_response_stops_it() -> None:
    """The response is under way for the call before the client has been told."""
    async with serving() as (server, service), calling(server) as client:
        await client.receive("session.created")
        service.opened[0].active_reply = "r1"
        assert (
            await refused(client, "response.cancel", response_id="resp_other") == "response_cancel_not_active"
        )
        await client.send("response.cancel")
        await service.opened[0].until_told("cancel_reply")


# ---- the beta protocol's flat names


@pytest.mark.parametrize(
    ("name", "described"),
    [
        ("pcm16", {"type": "audio/pcm", "rate": 24_000}),
        ("g711_ulaw", {"type": "audio/pcmu"}),
        ("g711_alaw", {"type": "audio/pcma"}),
    ],
)
@on_loop
async def test_flat_format_names_are_understood(name: str, described: dict[str, Any]) -> None:
    async with serving() as (server, _), calling(server) as client:
        nested = {"input": {"format": {"type": "audio/pcm", "rate": 8_000}}}
        await client.send("session.update", session={"audio": nested})
        await client.receive("session.updated")
        await client.send("session.update", session={"input_audio_format": name, "output_audio_format": name})
        audio = (await client.receive("session.updated"))["session"]["audio"]
        assert (audio["input"]["format"], audio["output"]["format"]) == (described, described)


@on_loop
async def test_a_flat_format_that_cannot_be_had_says_so() -> None:
    async with serving() as (server, _), calling(server) as client:
        await client.receive("session.created")
        session = {"input_audio_format": "g711_ulaw", "output_audio_format": "opus"}
        await client.socket.send(json.dumps({"type": "session.update", "event_id": "u1", "session": session}))
        error = await client.error()
        assert (error["code"], error["param"], error["event_id"]) == (
            "unsupported_format",
            "session.output_audio_format",
            "u1",
        )
        await client.send("session.update", session={})
        audio = (await client.receive("session.updated"))["session"]["audio"]
        assert audio["input"]["format"]["type"] == "audio/pcm", "both or neither"
