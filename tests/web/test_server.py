"""The server over real sockets, with scripted calls: pages, admission, bad input, faults, an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from typing import Any

import httpx
import numpy as np
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from pipeline import events
from pipeline.audio import float_to_pcm16
from pipeline.config import Settings
from tests.machine import PATIENCE
from tests.web.scripted import Client, calling, on_loop, serving, spoken_reply
from web import assets
from web.server import CannotListen, Server

TOKEN = "sesame-sesame-0123"


async def fetch(server: Server, path: str, method: str = "GET", **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
        return await client.request(method, f"http://127.0.0.1:{server.port}{path}", headers=headers)


async def closed(client: Client) -> int:
    """The close code, whatever is still on its way before it."""
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(ConnectionClosed):
            while True:
                await client.socket.recv()
    assert client.socket.close_code is not None
    return client.socket.close_code


# ---- pages


@on_loop
async def test_the_page_and_all_it_asks_for_is_there() -> None:
    async with serving() as (server, _):
        page = await fetch(server, "/")
        assert page.status_code == 200
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert page.headers["cache-control"] == "no-cache"
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        wanted = {f"/{name}" for name in re.findall(r'(?:src|href)="([\w-]+\.\w+)"', page.text)}
        scripts = {path for path in wanted if path.endswith(".js")}
        while scripts:
            code = (await fetch(server, scripts.pop())).text
            parts = r'(?:from "\./|addModule\(new URL\(")([\w-]+\.js)"'
            found = {f"/{name}" for name in re.findall(parts, code)}
            scripts |= found - wanted
            wanted |= found
        assert {f"/{file.name}" for file in assets.FOLDER.iterdir()} - wanted == {"/index.html"}
        for path in wanted:
            answer = await fetch(server, path)
            kinds = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith(kinds[path.rpartition(".")[2]])
            assert "http://" not in answer.text.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("HEAD", "/", 200),
        ("GET", "/?token=x", 200),
        ("GET", "/nothing", 404),
        ("GET", "/../pyproject.toml", 404),
        ("GET", "/%2e%2e/server.py", 404),
        ("GET", "/index.html", 404),
        ("POST", "/", 405),
        ("DELETE", "/v1/realtime", 405),
        ("GET", "/v1/realtime", 426),
        ("GET", "/healthz", 200),
    ],
)
@on_loop
async def test_plain_requests(method: str, path: str, status: int) -> None:
    async with serving() as (server, _):
        answer = await fetch(server, path, method)
        assert answer.status_code == status
        assert answer.headers["x-content-type-options"] == "nosniff"
        if method == "HEAD":
            assert answer.content == b""
            assert int(answer.headers["content-length"]) > 0
        if status == 405:
            assert answer.headers["allow"] == "GET, HEAD"


@on_loop
async def test_ready_only_once_the_models_are_loaded() -> None:
    server = Server(Settings(port=0))
    await server.start()
    try:
        answer = await fetch(server, "/readyz")
        assert (answer.status_code, answer.json()["ready"]) == (503, False)
        async with calling(server) as client:
            assert (await client.error())["code"] == "not_ready"
            assert await closed(client) == 1013
        assert (await fetch(server, "/healthz")).json() == {"status": "ok"}
    finally:
        await server.stop()
    async with serving(max_calls=3) as (server, _), calling(server) as client:
        await client.receive("session.created")
        answer = await fetch(server, "/readyz")
        assert (answer.status_code, answer.json()) == (200, {"ready": True, "calls": 1, "max_calls": 3})


@on_loop
async def test_metrics_count_the_turns_and_the_calls() -> None:
    async with serving(auth_token=TOKEN) as (server, service):
        assert (await fetch(server, "/metrics")).status_code == 401
        for listener in service.listeners:
            listener({"turn": 1, "agent": "support", "durations": {"voice_to_voice": 700.0}})
        answer = await fetch(server, "/metrics", Authorization=f"Bearer {TOKEN}")
        assert answer.headers["content-type"].startswith("text/plain")
        assert "rejoinder_calls_running 0.0" in answer.text
        assert 'rejoinder_turn_duration_seconds_count{stage="voice_to_voice"} 1.0' in answer.text


@on_loop
async def test_telephone_carriers_reach_their_part_of_the_server() -> None:
    async with serving(twilio_auth_token="secret", public_url="https://agent.example") as (server, _):
        answer = await fetch(server, "/phone/twilio/voice")
        assert answer.status_code == 403  # unsigned
        with pytest.raises(InvalidStatus) as caught:
            await connect(f"ws://127.0.0.1:{server.port}/phone/twilio", proxy=None)
        assert caught.value.response.status_code == 403


# ---- admission


@on_loop
async def test_a_token_is_asked_of_callers_but_not_of_readers() -> None:
    async with serving(auth_token=TOKEN) as (server, _):
        assert (await fetch(server, "/")).status_code == 200
        refused = await fetch(server, "/v1/realtime")
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert (await fetch(server, "/v1/realtime", Authorization=f"Bearer {TOKEN}")).status_code == 426
        with pytest.raises(InvalidStatus) as caught:
            async with calling(server):
                pass
        assert caught.value.response.status_code == 401
        protocols = ["realtime", f"openai-insecure-api-key.{TOKEN}"]
        async with calling(server, subprotocols=protocols) as client:
            await client.receive("session.created")
            assert client.socket.subprotocol == "realtime"


@on_loop
async def test_a_page_from_elsewhere_may_not_call() -> None:
    async with serving() as (server, service):
        with pytest.raises(InvalidStatus) as caught:
            async with calling(server, origin="https://evil.example"):
                pass
        assert caught.value.response.status_code == 403
        assert not service.opened


@on_loop
async def test_calls_over_the_limit_get_a_clear_error_and_disturb_nobody() -> None:
    async with serving(max_calls=1) as (server, service), calling(server) as first:
        await first.receive("session.created")
        async with calling(server) as second:
            error = await second.error()
            assert error["code"] == "too_many_calls"
            assert "max_calls" in error["message"]
            assert await closed(second) == 1013
        await service.opened[0].say(*spoken_reply())
        await first.receive("response.done")


@on_loop
async def test_an_agent_is_chosen_by_name() -> None:
    async with serving() as (server, _):
        async with calling(server, "?agent=support") as client:
            assert (await client.receive())["session"]["rejoinder"]["agent"] == "support"
        async with calling(server, "?agent=nobody") as client:
            error = await client.error()
            assert error["code"] == "unknown_agent"
            assert "receptionist" in error["message"]
            assert await closed(client) == 1008


# ---- a conversation


@on_loop
async def test_audio_arrives_resampled_and_whole() -> None:
    tone = 0.5 * np.sin(2 * np.pi * 300 * np.arange(24_000) / 24_000)
    pcm = float_to_pcm16(tone.astype(np.float32))
    async with serving() as (server, service), calling(server) as client:
        await client.receive("session.created")
        for start in range(0, len(pcm), 1920):
            await client.append(pcm[start : start + 1920])
        call = service.opened[0]
        await client.send("input_audio_buffer.commit")
        _, samples = await call.until_told("respond")
        heard = call.heard
        assert samples == len(heard) == pytest.approx(16_000, abs=2), "the resampler keeps nothing back"
        assert np.sqrt(np.mean(heard[1000:-1000] ** 2)) == pytest.approx(0.5 / np.sqrt(2), rel=0.02)


@on_loop
async def test_the_wire_rate_can_be_changed() -> None:
    def formats(rate: int) -> dict[str, Any]:
        return {"audio": {"input": {"format": {"type": "audio/pcm", "rate": rate}}}}

    async with serving() as (server, service), calling(server) as client:
        await client.send("session.update", session=formats(16_000))
        session = (await client.receive("session.updated"))["session"]
        assert session["audio"]["input"]["format"]["rate"] == 16_000
        await client.append(float_to_pcm16(np.full(1600, 0.5, np.float32)))
        await client.send("session.update", session=formats(44_101))
        error = await client.error()
        assert (error["code"], error["param"]) == ("unsupported_rate", "session.audio.input.format.rate")
        np.testing.assert_allclose(service.opened[0].heard, 0.5, atol=1e-3)


@on_loop
async def test_what_a_client_asks_for_reaches_the_call() -> None:
    async with serving() as (server, service), calling(server) as client:
        await client.receive("session.created")
        call = service.opened[0]
        await client.send("input_audio_buffer.commit")
        await call.until_told("respond")
        content = [{"type": "input_text", "text": "Are you open?"}]
        message = {"type": "message", "role": "user", "id": "mine", "content": content}
        await client.send("conversation.item.create", item=message)
        assert (await client.receive("conversation.item.done"))["item"]["id"] == "mine"
        await client.send("response.create")
        await call.until_told("say_text", "Are you open?")
        await call.say(*list(spoken_reply())[:3])
        item = (await client.receive("response.output_audio.delta"))["item_id"]
        await client.send("rejoinder.playback", item_id=item, played_ms=40)
        await call.until_told("playback", "r1", 40)
        await client.send("response.cancel")
        await call.until_told("cancel_reply")
        await client.send("conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=60)
        await client.receive("conversation.item.truncated")
        await call.until_told("truncate", "r1", 60)
        await call.say(events.ReplyDone(1, 1, "r1", "interrupted", "Yes.", ""))
        answer = (await client.receive("response.done"))["response"]
        assert (answer["status"], answer["status_details"]["reason"]) == ("cancelled", "client_cancelled")


# ---- bad input


@on_loop
async def test_bad_messages_get_errors_and_the_call_goes_on() -> None:
    async with serving() as (server, service), calling(server) as client:
        await client.receive("session.created")
        bad = [
            ("{nonsense", "invalid_json"),
            ("[1, 2]", "invalid_event"),
            (b"\x00\x01\x02", "binary_message"),
            ('{"type": "please.sing"}', "unknown_event"),
            ('{"type": "input_audio_buffer.append", "audio": 12}', "invalid_value"),
            ('{"type": "input_audio_buffer.append", "audio": "!!!!"}', "invalid_base64"),
            ('{"type": "response.cancel"}', "response_cancel_not_active"),
            ('{"type": "rejoinder.playback", "item_id": "item_x", "played_ms": 1}', "item_not_found"),
        ]
        for message, code in bad:
            await client.socket.send(message)
            error = await client.error()
            assert (error["type"], error["code"]) == ("invalid_request_error", code)
        long = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x" * 5000}]}
        await client.send("conversation.item.create", item=long, event_id="e1")
        error = await client.error()
        assert (error["code"], error["event_id"]) == ("text_too_long", "e1")
        await client.append(bytes(960))
        await service.opened[0].until_told("hear")


@on_loop
async def test_a_message_over_the_limit_closes_with_1009_and_ends_the_call() -> None:
    async with serving(max_message_bytes=8192) as (server, service), calling(server) as client:
        await client.receive("session.created")
        await client.socket.send("x" * 9000)
        assert await closed(client) == 1009
        await service.opened[0].until_told("over")
        assert service.opened[0].end_reason == "peer_gone"


@on_loop
async def test_text_that_is_not_utf8_closes_with_1007() -> None:
    async with serving() as (server, service), calling(server) as client:
        await client.receive("session.created")
        await client.socket.send(b"\xff\xfe", text=True)
        assert await closed(client) == 1007
        await service.opened[0].until_told("over")


# ---- peers that vanish, or do not read


@on_loop
async def test_a_peer_that_vanishes_mid_utterance_ends_its_call() -> None:
    async with serving() as (server, service):
        async with calling(server) as client:
            await client.append(bytes(9600))
            await client.receive("session.created")
            client.socket.transport.abort()
        await service.opened[0].until_told("over")
        assert service.opened[0].end_reason == "peer_gone"
        async with calling(server) as client:
            await client.receive("session.created")


@on_loop
async def test_a_client_that_leaves_is_not_heard_out() -> None:
    async with serving() as (server, service):
        async with calling(server) as client:
            for _ in range(4):
                await client.append(bytes(48_000 * 15))  # a minute of recordings in one go
            await client.receive("session.created")
        await service.opened[0].until_told("over")  # sooner than in a minute
        assert service.opened[0].end_reason == "peer_gone"


@on_loop
async def test_a_client_that_stops_reading_is_cut_off_after_the_send_timeout() -> None:
    async with serving(send_timeout_seconds=0.2) as (server, service):
        async with calling(server, max_queue=1, close_timeout=0.1) as client:
            await client.receive("session.created")
            call = service.opened[0]
            endless = [events.ReplyAudio(1, 1, "r1", np.zeros(24_000, np.float32), 24_000, 0.0)] * 1000
            with pytest.raises(events.PeerGone, match=r"0\.2 s"):
                await call.say(*endless)
            await call.until_told("over")
        assert call.end_reason == "peer_gone"


# ---- the end


@on_loop
async def test_stopping_ends_calls_with_a_reason_and_closes_what_was_opened() -> None:
    async with serving() as (server, service), calling(server) as client:
        await client.receive("session.created")
        stopping = asyncio.create_task(server.stop())
        assert (await client.receive("rejoinder.call.ended"))["reason"] == "shutdown"
        assert await closed(client) == 1001
        await stopping
        assert service.opened[0].end_reason == "shutdown"
        assert service.closed
        with pytest.raises(OSError, match=r"[Cc]onnect"):
            await connect(f"ws://127.0.0.1:{server.port}/", proxy=None)


@pytest.mark.parametrize(("reason", "code"), [("goodbye", 1000), ("silence", 1000), ("error", 1011)])
@on_loop
async def test_the_agent_may_end_the_call(reason: str, code: int) -> None:
    async with serving() as (server, service), calling(server) as client:
        await client.receive("session.created")
        service.opened[0].hang_up(reason)
        assert (await client.receive("rejoinder.call.ended"))["reason"] == reason
        assert await closed(client) == code


@on_loop
async def test_a_port_in_use_is_a_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen, match=rf"port {port} .* in use"):
            await Server(Settings(port=port)).start()
        server = Server(Settings(port=0, audiosocket_port=port))
        with pytest.raises(CannotListen, match="--audiosocket-port"):
            await server.start()
        await server.stop()
