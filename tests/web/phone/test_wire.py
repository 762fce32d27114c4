"""Carriers' messages, word for word, and what must not be believed of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.phone_scene import CARRIERS
from web.phone.asterisk import Asterisk
from web.phone.encodings import ALAW, Encoding
from web.phone.plivo import Plivo
from web.phone.telnyx import Telnyx
from web.phone.twilio import Twilio
from web.phone.vonage import Vonage
from web.phone.wire import BadMessage, Carrier, Heard, Played, Pressed, Problem, Started, Stopped

TWILIO_START = {
    "event": "start",
    "sequenceNumber": "1",
    "streamSid": "MZ1",
    "start": {
        "streamSid": "MZ1",
        "accountSid": "AC1",
        "callSid": "CA1",
        "tracks": ["inbound"],
        "customParameters": {"agent": "dentist", "caller": "+1555", "order": "42"},
        "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
    },
}


def started(carrier: Carrier, message: dict[str, Any]) -> Started:
    said = carrier.read(json.dumps(message))
    assert isinstance(said, Started)
    return said


def test_twilio() -> None:
    twilio = Twilio()
    assert twilio.read('{"event":"connected","protocol":"Call","version":"1.0.0"}') is None
    start = started(twilio, TWILIO_START)
    assert (start.call_id, start.account, start.caller, start.agent) == ("CA1", "AC1", "+1555", "dentist")
    assert start.variables == {"order": "42"}
    media = {"track": "inbound", "chunk": "7", "timestamp": "120", "payload": "//8="}
    assert twilio.read(json.dumps({"event": "media", "streamSid": "MZ1", "media": media})) == Heard(
        b"\xff\xff", 7, 120
    )
    outbound = {**media, "track": "outbound"}
    assert twilio.read(json.dumps({"event": "media", "streamSid": "MZ1", "media": outbound})) is None
    dtmf = {"event": "dtmf", "streamSid": "MZ1", "dtmf": {"track": "inbound_track", "digit": "#"}}
    assert twilio.read(json.dumps(dtmf)) == Pressed("#")
    mark = {"event": "mark", "streamSid": "MZ1", "mark": {"name": "a.1"}}
    assert twilio.read(json.dumps(mark)) == Played("a.1")
    assert twilio.read('{"event":"stop","streamSid":"MZ1","stop":{}}') == Stopped()
    assert json.loads(twilio.audio(b"\xff\xff")) == {
        "event": "media",
        "streamSid": "MZ1",
        "media": {"payload": "//8="},
    }
    assert [json.loads(m) for m in twilio.mark("a.1")] == [
        {"event": "mark", "streamSid": "MZ1", "mark": {"name": "a.1"}}
    ]
    assert [json.loads(m) for m in twilio.clear()] == [{"event": "clear", "streamSid": "MZ1"}]


def test_telnyx() -> None:
    telnyx = Telnyx()
    message = {
        "event": "start",
        "stream_id": "s",
        "start": {
            "call_control_id": "v3:c",
            "from": "+1555",
            "custom_parameters": [{"name": "reply_codec", "value": "PCMA"}, {"name": "agent", "value": "x"}],
            "media_format": {"encoding": "PCMA", "sample_rate": 8000, "channels": 1},
        },
    }
    start = started(telnyx, message)
    assert (start.call_id, start.caller, start.agent) == ("v3:c", "+1555", "x")
    assert (start.hears, start.speaks) == (ALAW, ALAW)
    assert telnyx.read('{"event":"error","payload":{"title":"invalid_media"}}') == Problem(
        "{'title': 'invalid_media'}"
    )
    message["start"]["media_format"]["encoding"] = "OPUS"  # type: ignore[index]
    with pytest.raises(BadMessage, match="stream_codec"):
        Telnyx().read(json.dumps(message))


@pytest.mark.parametrize(
    "headers",
    [
        "agent=dentist;order=42",
        "{agent: dentist, order: 42}",
        "X-PH-agent=dentist;X-PH-order=42",
        "agent=dentist,order=42;",
    ],
)
def test_plivo(headers: str) -> None:
    plivo = Plivo()
    message = {
        "event": "start",
        "start": {
            "callId": "c",
            "streamId": "s",
            "accountId": "MA",
            "mediaFormat": {"encoding": "audio/x-l16", "sampleRate": 16000},
        },
        "extra_headers": headers,
    }
    start = started(plivo, message)
    assert (start.agent, start.variables) == ("dentist", {"order": "42"})
    assert start.hears == Encoding("l16", 16000)
    assert json.loads(plivo.audio(b"\0\0"))["media"] == {
        "contentType": "audio/x-l16",
        "sampleRate": 16000,
        "payload": "AAA=",
    }
    assert plivo.read('{"event":"playedStream","streamId":"s","name":"a"}') == Played("a")
    assert plivo.read('{"event":"clearedAudio","streamId":"s"}') is None


def test_vonage() -> None:
    vonage = Vonage()
    opened = {
        "event": "websocket:connected",
        "content-type": "audio/l16;rate=8000",
        "uuid": "u",
        "caller": "1555",
        "agent": "x",
        "order": 42,
    }
    start = started(vonage, opened)
    assert (start.call_id, start.caller, start.agent, start.variables) == ("u", "1555", "x", {"order": "42"})
    assert start.hears == Encoding("l16", 8000)
    assert vonage.read(b"\1\2") == Heard(b"\1\2")
    assert vonage.read('{"event":"websocket:dtmf","digit":"5","duration":260}') == Pressed("5")
    with pytest.raises(BadMessage, match="content-type"):
        Vonage().read('{"event":"websocket:connected","content-type":"audio/opus"}')


def test_asterisk_in_json_and_in_plain_text() -> None:
    asterisk = Asterisk({"agent": "dentist", "caller": "1555"})
    message = {
        "event": "MEDIA_START",
        "connection_id": "e2",
        "channel_id": "17.4",
        "format": "slin16",
        "optimal_frame_size": 640,
        "channel_variables": {"order": "42"},
    }
    start = started(asterisk, message)
    assert (start.call_id, start.agent, start.caller) == ("17.4", "dentist", "1555")
    assert (start.hears, start.variables) == (Encoding("l16", 16000), {"order": "42"})
    assert asterisk.pause() == ['{"command":"PAUSE_MEDIA"}']
    plain = Asterisk()
    said = plain.read("MEDIA_START connection_id:e2 channel:WebSocket/x channel_id:17.4 format:ulaw ptime:20")
    assert isinstance(said, Started)
    assert plain.mark("a.1") == ["MARK_MEDIA a.1"]
    assert plain.read("MEDIA_MARK_PROCESSED a.1") == Played("a.1")
    assert plain.read("DTMF_END digit:4 channel_id:17.4") == Pressed("4")
    assert plain.read("MEDIA_XOFF") is None
    error = "ERROR channel_id:17.4 error_text:PAUSE_MEDIA not supported in passthrough mode"
    assert plain.read(error) == Problem("PAUSE_MEDIA not supported in passthrough mode")


def test_the_longest_mark_fits_into_asterisks_messages() -> None:
    """Names as the pipeline makes them, in a call of a hundred turns and a reply of a minute."""
    name = "0123456789ab.100.20.reply_0123456789ab_100.60000"
    assert len(Asterisk().mark(name)[0]) <= 128


BAD = [
    "",
    "{",
    "[]",
    "null",
    '"start"',
    "[" * 100_000,
    '{"event":"start"}',
    '{"event":"start","start":[]}',
    '{"event":"media","media":{}}',
    '{"event":"media","media":{"payload":5}}',
    '{"event":"media","media":{"payload":"%%%"}}',
    '{"event":"media","media":{"payload":"é"}}',
    '{"event":"dtmf"}',
    '{"event":"mark","mark":"x"}',
]


@pytest.mark.parametrize("carrier", ["twilio", "telnyx", "plivo"])
@pytest.mark.parametrize("message", BAD)
def test_nonsense_is_called_so(carrier: str, message: str) -> None:
    try:
        said = CARRIERS[carrier]().read(message)
    except BadMessage:
        return
    assert carrier != "twilio", said
    assert said is None or isinstance(said, Started)  # a Telnyx start needs nothing; Plivo knows no marks


def test_audio_of_another_stream_is_refused() -> None:
    twilio = Twilio()
    with pytest.raises(BadMessage, match="not started"):
        twilio.read('{"event":"media","streamSid":"MZ1","media":{"payload":""}}')
    started(twilio, TWILIO_START)
    with pytest.raises(BadMessage, match="not started"):
        twilio.read('{"event":"media","streamSid":"MZ2","media":{"payload":""}}')


def test_custom_parameters_are_bounded() -> None:
    many = {f"p{n}": "x" * 10_000 for n in range(1000)}
    message = json.loads(json.dumps(TWILIO_START))
    message["start"]["customParameters"] = many | {"list": [1], "none": None}
    start = started(Twilio(), message)
    assert len(start.variables) == 32
    assert max(map(len, start.variables.values())) == 512


FIELDS = st.sampled_from(
    [
        "start",
        "media",
        "dtmf",
        "mark",
        "payload",
        "name",
        "digit",
        "track",
        "chunk",
        "stream_id",
        "streamSid",
        "streamId",
        "mediaFormat",
        "media_format",
        "encoding",
        "sampleRate",
        "format",
        "content-type",
        "customParameters",
        "custom_parameters",
        "extra_headers",
        "value",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(FIELDS, inside, max_size=3),
    max_leaves=8,
)
EVENTS = st.sampled_from(
    [
        "start",
        "media",
        "dtmf",
        "mark",
        "stop",
        "error",
        "playedStream",
        "websocket:connected",
        "websocket:dtmf",
        "websocket:notify",
        "MEDIA_START",
        "DTMF_END",
        "MEDIA_MARK_PROCESSED",
        "ERROR",
    ]
)


@pytest.mark.parametrize("carrier", sorted(CARRIERS))
@settings(max_examples=150, deadline=None)
@given(event=EVENTS, fields=st.dictionaries(FIELDS, JSON, max_size=4))
def test_no_message_is_more_than_bad(carrier: str, event: str, fields: dict[str, Any]) -> None:
    try:
        CARRIERS[carrier]().read(json.dumps({"event": event, **fields}))
    except BadMessage:
        return


@settings(max_examples=200, deadline=None)
@given(message=st.text() | st.binary())
def test_no_text_is_more_than_bad(message: str | bytes) -> None:
    for carrier in CARRIERS.values():
        try:
            carrier().read(message)
        except BadMessage:
            continue
