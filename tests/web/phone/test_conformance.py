"""The wire's shapes against others' code: the carriers' own SDKs and pipecat's serializers.

What pipecat writes was recorded; its serializers themselves are asked, too (from `make test-packages`).
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import re
import time
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree

import numpy as np
import plivo.xml
import pytest
from nacl.signing import SigningKey
from plivo.utils import signature_v3
from twilio.request_validator import RequestValidator
from twilio.twiml.voice_response import VoiceResponse
from vonage_jwt import verify_signature
from vonage_voice.models import Connect, WebsocketEndpoint

from fixtures.phone_scene import CARRIERS
from tests.machine import pipecat
from tests.web.phone.served import request
from tests.web.phone.test_signatures import _jwt
from web.phone import documents, signatures
from web.phone.encodings import MULAW
from web.phone.signatures import ReplayGuard
from web.phone.simulator.carriers import SHAPES
from web.phone.simulator.shape import Play
from web.phone.wire import Heard, Pressed

URL = "wss://agent.example.com/phone/twilio"
TONE = (np.sin(np.arange(160) / 3) * 0.4).astype(np.float32)


# ---- the carriers' SDKs


def test_twilios_validator_and_ours_agree() -> None:
    validator = RequestValidator("token")
    for signed in (URL, "https://agent.example.com/phone/twilio/voice?CallSid=CA1&From=%2B1555"):
        path = signed.split("example.com")[1]
        given = request(path, X_Twilio_Signature=validator.compute_signature(signed, {}))
        assert signatures.twilio(given, token="token")
        with_port = signed.replace("example.com", "example.com:443")
        given = request(path, X_Twilio_Signature=validator.compute_signature(with_port, {}))
        assert signatures.twilio(given, token="token")
    given = request(
        "/phone/twilio",
        X_Twilio_Signature=validator.compute_signature(URL, {}, "HMAC_SHA256"),
        X_Twilio_Webhooks_Signature_Settings="key=k,algorithm=HMAC_SHA256",
    )
    assert signatures.twilio(given, token="token")


FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize("path", ["/phone/twilio/voice", "/phone/twilio/voice?agent=dentist"])
def test_twilios_validator_and_ours_agree_on_a_posted_form(path: str) -> None:
    validator = RequestValidator("token")
    fields = {"To": "+1555", "From": "", "Digits": "1 & 2 = é"}
    signature = validator.compute_signature(f"https://agent.example.com{path}", fields)
    given = request(path, X_Twilio_Signature=signature, Content_Type=FORM)
    assert signatures.twilio(replace(given, body=urlencode(fields).encode()), token="token")
    assert not signatures.twilio(
        replace(given, body=urlencode(fields | {"To": "+1556"}).encode()), token="token"
    )


def test_twilios_builder_writes_the_same_document() -> None:
    response = VoiceResponse()
    stream = response.connect().stream(url=URL)
    stream.parameter(name="agent", value='a "b" & c')
    assert _tree(documents.twiml(URL, {"agent": 'a "b" & c'})) == _tree(str(response))
    response = VoiceResponse()
    response.dial("+1555")
    assert _tree(documents.dial_twiml("+1555")) == _tree(str(response))


def test_plivos_builder_writes_the_same_document() -> None:
    stream = plivo.xml.StreamElement(
        "wss://agent.example.com/phone/plivo",
        bidirectional=True,
        keepCallAlive=True,
        contentType="audio/x-mulaw;rate=8000",
        extraHeaders="agent=dentist",
    )
    theirs = plivo.xml.ResponseElement().add(stream).to_string()
    ours = documents.plivo_xml("wss://agent.example.com/phone/plivo", {"agent": "dentist"})
    assert _tree(ours) == _tree(theirs)


def test_plivos_validator_and_ours_agree() -> None:
    for path in ("/phone/plivo", "/phone/plivo/answer?To=1&From=2"):
        uri = f"https://agent.example.com{path}"
        base = signature_v3.construct_get_url(uri, {}).decode()
        signature = signature_v3.get_signature_v3("token", base, "77").decode()
        assert signature_v3.validate_v3_signature("GET", uri, "77", "token", signature)
        given = request(path, X_Plivo_Signature_V3=signature, X_Plivo_Signature_V3_Nonce="77")
        assert signatures.plivo(given, token="token", guard=ReplayGuard(), now=0)


@pytest.mark.parametrize("path", ["/phone/plivo/answer", "/phone/plivo/answer?b=2&a=1"])
def test_plivos_validator_and_ours_agree_on_a_posted_form(path: str) -> None:
    uri, fields = f"https://agent.example.com{path}", {"To": "1555", "From": "", "Event": "StartApp"}
    base = signature_v3.construct_post_url(uri, fields).decode()
    signature = signature_v3.get_signature_v3("token", base, "77").decode()
    assert signature_v3.validate_v3_signature("POST", uri, "77", "token", signature, dict(fields))
    given = request(path, X_Plivo_Signature_V3=signature, X_Plivo_Signature_V3_Nonce="77", Content_Type=FORM)
    body = urlencode(fields).encode()
    assert signatures.plivo(replace(given, body=body), token="token", guard=ReplayGuard(), now=0)
    assert not signatures.plivo(replace(given, body=body + b"5"), token="token", guard=ReplayGuard(), now=0)


@pytest.mark.parametrize("body", ["", "From=%2B1555&CallSid=v3%3Aabc"])
def test_telnyxs_verifier_and_ours_agree(body: str) -> None:
    from telnyx.lib import webhook_verification  # takes seconds to import

    key = SigningKey.generate()
    public = base64.b64encode(bytes(key.verify_key)).decode()
    stamp = str(int(time.time()))
    signature = base64.b64encode(key.sign(f"{stamp}|{body}".encode()).signature).decode()
    webhook_verification.verify_webhook_signature(
        body, {"telnyx-timestamp": stamp, "telnyx-signature-ed25519": signature}, public
    )
    given = request("/phone/telnyx", Telnyx_Timestamp=stamp, Telnyx_Signature_Ed25519=signature)
    assert signatures.telnyx(
        replace(given, body=body.encode()), public_key=public, guard=ReplayGuard(), now=time.time()
    )


def test_vonages_verifier_and_ours_agree() -> None:
    now = time.time()
    ours = "a secret of 32 characters or more"
    for secret, genuine in ((ours, True), ("another of 32 characters or more", False)):
        token = _jwt(secret, iat=int(now))
        given = request("/phone/vonage", Authorization=f"Bearer {token}")
        assert verify_signature(token, ours) is genuine
        assert signatures.vonage(given, secret=ours, guard=ReplayGuard(), now=now) is genuine


def test_vonages_model_takes_our_document() -> None:
    ours = documents.ncco("wss://agent.example.com/phone/vonage", {"agent": "dentist"})
    endpoint = dict(ours[0]["endpoint"][0])
    theirs = WebsocketEndpoint(
        uri=endpoint["uri"],
        contentType=endpoint["content-type"],
        headers=endpoint["headers"],
        authorization=endpoint["authorization"],
    )
    connect = Connect(endpoint=[theirs], randomFromNumber=True)
    assert json.loads(json.dumps(connect.model_dump(by_alias=True, exclude_none=True))) == ours[0]


# ---- pipecat's serializers, which know nothing of us

RECORDED = {
    "twilio": (
        '{"event": "media", "streamSid": "MZ", "media": {"payload": "PAYLOAD"}}',
        '{"event": "clear", "streamSid": "MZ"}',
    ),
    "telnyx": ('{"event": "media", "media": {"payload": "PAYLOAD"}}', '{"event": "clear"}'),
    "plivo": (
        '{"event": "playAudio", "media": {"contentType": "audio/x-mulaw", "sampleRate": 8000,'
        ' "payload": "PAYLOAD"}, "streamId": "b77e037d-4119-44b5-902d-25826b654539"}',
        '{"event": "clearAudio", "streamId": "b77e037d-4119-44b5-902d-25826b654539"}',
    ),
    "vonage": ("", '{"action": "clear"}'),
}
"""Audio and clear as pipecat-ai 1.14.0 wrote them, but for the samples (Vonage's audio is binary)."""


@pytest.mark.parametrize("carrier", sorted(RECORDED))
def test_the_bridge_writes_what_pipecat_wrote(carrier: str) -> None:
    shape, ours = SHAPES[carrier](), CARRIERS[carrier]()
    for message in shape.opening():
        ours.read(message)
    payload = MULAW.encode(TONE)
    known = {"MZ": "MZ" + "1" * 32, "PAYLOAD": base64.b64encode(payload).decode()}
    audio, clear = (
        re.sub('(?<=")(MZ|PAYLOAD)(?=")', lambda m: known[m[1]], text) for text in RECORDED[carrier]
    )
    assert [json.loads(clear)] == [json.loads(message) for message in ours.clear()]
    if audio:
        assert json.loads(audio) == json.loads(ours.audio(payload))
        assert shape.read(audio) == Play(payload)


def _serializer(carrier: str) -> Any:
    module = pipecat(f"serializers.{carrier}")
    processor = pipecat("processors.frame_processor")
    kind = getattr(module, f"{carrier.capitalize()}FrameSerializer")
    parameters = {
        "twilio": lambda: kind("MZ" + "1" * 32, params=kind.InputParams(auto_hang_up=False)),
        "telnyx": lambda: kind("s", "PCMU", "PCMU", params=kind.InputParams(auto_hang_up=False)),
        "plivo": lambda: kind(STREAM_OF_PLIVO, params=kind.InputParams(auto_hang_up=False)),
        "vonage": kind,
    }
    serializer = parameters[carrier]()
    setup = processor.FrameProcessorSetup.__new__(processor.FrameProcessorSetup)
    object.__setattr__(setup, "audio_in_sample_rate", 8000)
    asyncio.run(serializer.setup(setup))
    return serializer


STREAM_OF_PLIVO = "b77e037d-4119-44b5-902d-25826b654539"


@pytest.mark.parametrize("carrier", ["twilio", "telnyx", "plivo", "vonage"])
def test_pipecat_understands_the_simulated_carrier(carrier: str) -> None:
    """Audio and keys, as the simulator sends them."""
    serializer = _serializer(carrier)
    shape = SHAPES[carrier]()
    for message in shape.opening():
        asyncio.run(serializer.deserialize(message))
    key = asyncio.run(serializer.deserialize(shape.digit("5")))
    assert key.button.value == "5"
    frames = []
    for number in range(20):
        payload = shape.encoding.encode(np.tile(TONE, shape.encoding.rate // 8000))
        frames.append(asyncio.run(serializer.deserialize(shape.media(payload, number * 20))))
    assert sum(len(frame.audio) for frame in frames if frame is not None) > 0


@pytest.mark.parametrize("carrier", ["twilio", "plivo"])
def test_the_simulated_carrier_and_pipecat_agree_on_what_is_played(carrier: str) -> None:
    """pipecat's audio and clear are taken by the simulator, and are what the bridge writes."""
    frames = pipecat("frames.frames")
    serializer, shape, ours = _serializer(carrier), SHAPES[carrier](), CARRIERS[carrier]()
    for message in shape.opening():
        ours.read(message)
    pcm = (TONE * 32767).astype("<i2").tobytes()
    theirs = asyncio.run(serializer.serialize(frames.OutputAudioRawFrame(pcm, 8000, 1)))
    payload = shape.read(theirs).payload
    assert json.loads(theirs) == json.loads(ours.audio(payload))
    assert len(payload) == MULAW.frame_bytes
    cleared = asyncio.run(serializer.serialize(frames.InterruptionFrame()))
    assert [json.loads(cleared)] == [json.loads(message) for message in ours.clear()]
    assert shape.read(cleared) == shape.read(ours.clear()[0])


@pytest.mark.parametrize("carrier", ["telnyx", "vonage"])
def test_the_bridge_clears_as_pipecat_does(carrier: str) -> None:
    frames = pipecat("frames.frames")
    cleared = asyncio.run(_serializer(carrier).serialize(frames.InterruptionFrame()))
    ours = CARRIERS[carrier]().clear()
    assert [json.loads(cleared)] == [json.loads(message) for message in ours]


@pytest.mark.parametrize("carrier", ["twilio", "telnyx", "plivo", "vonage"])
def test_the_bridge_hears_what_pipecat_hears(carrier: str) -> None:
    shape, ours = SHAPES[carrier](), CARRIERS[carrier]()
    for message in shape.opening():
        ours.read(message)
    payload = shape.encoding.encode(np.tile(TONE, shape.encoding.rate // 8000))
    heard = ours.read(shape.media(payload, 0))
    assert isinstance(heard, Heard)
    assert heard.payload == payload
    assert ours.read(shape.digit("#")) == Pressed("#")


def _tree(document: str) -> object:
    """An XML document without the white space between its elements."""

    def node(element: ElementTree.Element) -> object:
        return element.tag, element.attrib, (element.text or "").strip(), [node(child) for child in element]

    return node(ElementTree.fromstring(document.encode()))


def test_our_own_hmac_is_pythons() -> None:
    digest = base64.b64encode(hmac.digest(b"token", URL.encode(), "sha1")).decode()
    assert signatures.twilio(request("/phone/twilio", X_Twilio_Signature=digest), token="token")
