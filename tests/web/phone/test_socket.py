"""The bridge over a real websocket: who is let in, what webhooks say, and what bad connections do."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from pipeline.config import Settings
from tests.machine import PATIENCE
from tests.web.phone.served import Served, phone_settings, serving
from tests.web.phone.test_wire import TWILIO_START
from web.phone.simulator.call import SimulatedCall
from web.phone.simulator.carriers import SHAPES
from web.phone.simulator.line import SocketLink

UNSIGNED = phone_settings(phone_unsigned=True)


def opened(served: Served, path: str, **options: Any) -> connect:
    return connect(served.address(path), proxy=None, **options)


async def receive(socket: ClientConnection, event: str) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE):
        while True:
            told: dict[str, Any] = json.loads(await socket.recv())
            if told["event"] == event:
                return told


async def until_closed(socket: ClientConnection) -> int | None:
    async with asyncio.timeout(PATIENCE):
        try:
            while True:
                await socket.recv()
        except ConnectionClosed:
            return socket.close_code


# ---- whole calls


@pytest.mark.parametrize("carrier", sorted(SHAPES))
def test_the_greeting_is_heard(carrier: str) -> None:
    async def talk() -> None:
        async with serving(UNSIGNED) as served:
            shape = SHAPES[carrier]()
            async with opened(served, shape.path) as socket:
                phone = SimulatedCall(shape, SocketLink(socket))
                running = asyncio.create_task(phone.run())
                async with asyncio.timeout(PATIENCE):
                    await phone.until_quiet(0.1)
                phone.hang_up()
                await running
            assert phone.refused == []
            assert phone.frames_played == pytest.approx(len("Hello.") * 0.06 / 0.02, abs=1)
        assert served.switchboard.running == 0

    asyncio.run(talk())


# ---- admission


def _refused(settings: Settings, path: str, **options: Any) -> int:
    async def ask() -> int:
        async with serving(settings) as served:
            with pytest.raises(InvalidStatus) as refused:
                async with opened(served, path, **options):
                    raise AssertionError("the socket opened")
            assert served.service.opened == []
            return int(refused.value.response.status_code)

    return asyncio.run(ask())


@pytest.mark.parametrize("carrier", sorted(SHAPES))
def test_nobody_is_let_in_without_a_secret(carrier: str) -> None:
    assert _refused(phone_settings(), f"/phone/{carrier}") == 403


def test_a_wrong_path_is_not_found(caplog: pytest.LogCaptureFixture) -> None:
    assert _refused(UNSIGNED, "/phone/nobody") == 404
    assert "a socket was asked for at /phone/nobody, where there is none" in caplog.text


def test_a_forged_signature_is_refused_before_the_socket_opens(caplog: pytest.LogCaptureFixture) -> None:
    settings = phone_settings(twilio_auth_token=SecretStr("token"))
    headers = {"X-Twilio-Signature": base64.b64encode(b"0" * 20).decode()}
    assert _refused(settings, "/phone/twilio", additional_headers=headers) == 403
    assert "twilio: a request for /phone/twilio without a valid signature" in caplog.text


def test_a_replayed_signature_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    async def talk() -> None:
        settings = phone_settings(plivo_auth_token=SecretStr("token"), public_url="https://voice.example.com")
        signed = hmac.digest(b"token", b"wss://voice.example.com/phone/plivo.77", "sha256")
        headers = {
            "X-Plivo-Signature-V3": base64.b64encode(signed).decode(),
            "X-Plivo-Signature-V3-Nonce": "77",
        }
        async with serving(settings) as served:
            async with opened(served, "/phone/plivo", additional_headers=headers):
                assert caplog.text == ""
            with pytest.raises(InvalidStatus):
                async with opened(served, "/phone/plivo", additional_headers=headers):
                    raise AssertionError("the socket opened")

    asyncio.run(talk())
    assert "plivo: a request for /phone/plivo without a valid signature" in caplog.text


def test_a_page_cannot_pass_for_an_unsigned_carrier() -> None:
    async def talk() -> None:
        headers = {"Origin": "http://evil.example"}
        async with serving(UNSIGNED) as served:
            with pytest.raises(InvalidStatus, match="403"):
                async with opened(served, "/phone/twilio", additional_headers=headers):
                    raise AssertionError("the socket opened")

    asyncio.run(talk())


def test_twilios_signature_opens_the_socket() -> None:
    async def talk() -> None:
        settings = phone_settings(
            twilio_auth_token=SecretStr("token"), public_url="https://voice.example.com"
        )
        signed = hmac.digest(b"token", b"wss://voice.example.com/phone/twilio", "sha1")
        headers = {"X-Twilio-Signature": base64.b64encode(signed).decode()}
        async with (
            serving(settings) as served,
            opened(served, "/phone/twilio", additional_headers=headers) as socket,
        ):
            await socket.send(json.dumps(TWILIO_START | {"start": {"streamSid": "MZ1", "callSid": "CA1"}}))
            assert (await receive(socket, "media"))["streamSid"] == "MZ1"

    asyncio.run(talk())


def test_asterisks_secret_opens_the_socket_and_is_no_variable() -> None:
    async def talk() -> None:
        settings = phone_settings(asterisk_secret=SecretStr("hush"))
        path = "/phone/asterisk?token=hush&caller=1555&order=42"
        async with serving(settings) as served, opened(served, path) as socket:
            await socket.send('{"event":"MEDIA_START","format":"ulaw","channel_id":"1"}')
            async with asyncio.timeout(PATIENCE):
                assert len(await socket.recv()) == 160
            assert served.service.asked[0]["variables"] == {"order": "42"}
            assert served.service.asked[0]["caller"] == "1555"

    asyncio.run(talk())


def test_callers_numbers_are_masked_for_the_log() -> None:
    async def talk() -> None:
        settings = phone_settings(phone_unsigned=True, mask_caller_numbers=True)
        async with serving(settings) as served, opened(served, "/phone/twilio") as socket:
            start = {"streamSid": "MZ1", "customParameters": {"caller": "+15550100123"}}
            await socket.send(json.dumps(TWILIO_START | {"start": start}))
            await receive(socket, "media")
            assert served.service.asked[0]["caller"] == "*********123"

    asyncio.run(talk())


# ---- webhooks


def _get(settings: Settings, path: str, **headers: str) -> httpx.Response:
    async def ask() -> httpx.Response:
        async with (
            serving(settings) as served,
            httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client,
        ):
            return await client.get(f"http://127.0.0.1:{served.port}{path}", headers=headers)

    return asyncio.run(ask())


def _post(settings: Settings, path: str, headers: dict[str, str], **body: Any) -> httpx.Response:
    async def ask() -> httpx.Response:
        async with (
            serving(settings) as served,
            httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client,
        ):
            return await client.post(f"http://127.0.0.1:{served.port}{path}", headers=headers, **body)

    return asyncio.run(ask())


def test_a_posted_webhook_is_answered_if_its_form_is_signed() -> None:
    settings = phone_settings(
        twilio_auth_token=SecretStr("token"), public_url="https://voice.example.com/agents"
    )
    signed = b"https://voice.example.com/agents/phone/twilio/voice?agent=dentistCallSidCA1From+15550100123"
    headers = {"X-Twilio-Signature": base64.b64encode(hmac.digest(b"token", signed, "sha1")).decode()}
    path, form = "/phone/twilio/voice?agent=dentist", {"From": "+15550100123", "CallSid": "CA1"}
    answer = _post(settings, path, headers, data=form)
    assert answer.status_code == 200
    assert '<Stream url="wss://voice.example.com/agents/phone/twilio">' in answer.text
    assert '<Parameter name="caller" value="+15550100123"/>' in answer.text
    assert '<Parameter name="agent" value="dentist"/>' in answer.text
    assert _post(settings, path, headers, data=form | {"From": "+15550100124"}).status_code == 403


def test_the_voice_webhook_connects_the_stream() -> None:
    settings = phone_settings(phone_unsigned=True, public_url="https://voice.example.com")
    answer = _get(settings, "/phone/twilio/voice?From=%2B15550100123&agent=dentist")
    assert answer.headers["Content-Type"] == "text/xml"
    assert '<Stream url="wss://voice.example.com/phone/twilio">' in answer.text
    assert '<Parameter name="caller" value="+15550100123"/>' in answer.text
    assert '<Parameter name="agent" value="dentist"/>' in answer.text


def test_the_other_carriers_may_post_too() -> None:
    plivo = _post(UNSIGNED, "/phone/plivo/answer", {}, data={"From": "15550100123"})
    assert 'extraHeaders="caller=15550100123"' in plivo.text
    vonage = _post(UNSIGNED, "/phone/vonage/answer", {}, json={"from": "15550100123", "uuid": "u1"})
    assert vonage.json()[0]["endpoint"][0]["headers"] == {"uuid": "u1", "caller": "15550100123"}
    settings = phone_settings(phone_unsigned=True, telnyx_stream_token=SecretStr("a b"))
    telnyx = _post(settings, "/phone/telnyx/voice?agent=dentist", {}, data={"From": "+15550100123"})
    assert '/phone/telnyx?token=a+b" bidirectionalMode="rtp"' in telnyx.text
    assert '<Parameter name="agent" value="dentist"/>' in telnyx.text


def test_vonages_events_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "rejoinder.phone")
    told = {"uuid": "u1", "status": "failed", "reason": "no answer"}
    assert _post(UNSIGNED, "/phone/vonage/event", {}, json=told).status_code == 200
    assert "vonage call u1: failed no answer" in caplog.text


def test_a_posted_body_that_is_neither_form_nor_json_is_refused() -> None:
    answer = _post(UNSIGNED, "/phone/vonage/answer", {}, content=b"\xff{")
    assert (answer.status_code, "not JSON" in answer.text) == (400, True)


def test_a_webhooks_values_cannot_break_out_of_the_document() -> None:
    answer = _get(UNSIGNED, "/phone/twilio/voice?From=%22/%3E%3CDial%3E900%3C/Dial%3E")
    assert "<Dial>" not in answer.text


def test_the_other_answer_urls() -> None:
    plivo = _get(UNSIGNED, "/phone/plivo/answer?From=15550100123")
    assert 'extraHeaders="caller=15550100123"' in plivo.text
    vonage = _get(UNSIGNED, "/phone/vonage/answer?from=15550100123&uuid=u1").json()
    endpoint = vonage[0]["endpoint"][0]
    assert endpoint["headers"] == {"uuid": "u1", "caller": "15550100123"}
    assert endpoint["uri"].endswith("/phone/vonage")
    assert "<Number>+1555</Number>" in _get(UNSIGNED, "/phone/plivo/dial?to=%2B1555").text


@pytest.mark.parametrize(
    "path", ["twilio/voice", "telnyx/voice", "plivo/answer", "plivo/dial", "vonage/answer", "vonage/event"]
)
def test_webhooks_answer_only_the_carrier(path: str) -> None:
    assert _get(phone_settings(), f"/phone/{path}").status_code == 403
