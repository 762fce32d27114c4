"""Plivo audio streaming (`<Stream bidirectional="true">`): JSON with base64 mu-law or linear PCM.

A checkpoint comes back as `playedStream` once played, and not at all when it was cleared.
"""

from __future__ import annotations

import re
from typing import Any

from web.phone.encodings import MULAW, Encoding
from web.phone.wire import (
    BadMessage,
    Carrier,
    Inbound,
    Message,
    Played,
    Pressed,
    Started,
    Stopped,
    base64_text,
    compact,
    heard,
    json_object,
    number,
    parameters,
    part,
    text,
)

_RATES = (8000, 16000)


class Plivo(Carrier):
    name = "plivo"

    def __init__(self) -> None:
        self._stream = ""
        self._speaks = MULAW

    def read(self, message: Message) -> Inbound | None:
        told = json_object(message)
        event = told.get("event")
        if event == "start":
            return self._start(part(told, "start"), text(told, "extra_headers"))
        known = ("media", "dtmf", "playedStream", "stop")
        if event in known and text(told, "streamId") not in ("", self._stream):
            raise BadMessage(f"{event!r} of a stream that has not started")
        match event:
            case "media":
                return heard(part(told, "media"))
            case "dtmf":
                return Pressed(text(part(told, "dtmf"), "digit"))
            case "playedStream":
                return Played(text(told, "name"))
            case "stop":
                return Stopped()
        return None

    def _start(self, start: dict[str, Any], headers: str) -> Started:
        stream = text(start, "streamId")
        if not stream:
            raise BadMessage("'start' without a streamId")
        encoding = _encoding(start.get("mediaFormat"))
        if not self._stream:
            self._stream, self._speaks = stream, encoding
        custom = _extra_headers(headers)
        return Started(
            stream_id=stream,
            call_id=text(start, "callId"),
            hears=encoding,
            speaks=encoding,
            account=text(start, "accountId"),
            caller=custom.pop("caller", None),
            agent=custom.pop("agent", None),
            variables=custom,
        )

    def audio(self, frame: bytes) -> Message:
        media = {
            "contentType": "audio/x-mulaw" if self._speaks.kind == "mulaw" else "audio/x-l16",
            "sampleRate": self._speaks.rate,
            "payload": base64_text(frame),
        }
        return compact({"event": "playAudio", "streamId": self._stream, "media": media})

    def mark(self, name: str) -> list[Message]:
        return [compact({"event": "checkpoint", "streamId": self._stream, "name": name})]

    def clear(self) -> list[Message]:
        return [compact({"event": "clearAudio", "streamId": self._stream})]


def _encoding(media_format: object) -> Encoding:
    kind = text(media_format, "encoding") or "audio/x-mulaw"
    rate = number(media_format, "sampleRate") or 8000
    if kind == "audio/x-mulaw" and rate == 8000:
        return MULAW
    if kind == "audio/x-l16" and rate in _RATES:
        return Encoding("l16", rate)
    raise BadMessage(f"media in {kind!r} at {rate} Hz; set contentType to audio/x-mulaw;rate=8000")


def _extra_headers(headers: str) -> dict[str, str]:
    """`a=1;b=2`, also in braces, with colons or commas; the prefix that SIP gives the names is dropped."""
    pairs = (re.split("[=:]", pair, maxsplit=1) for pair in re.split("[;,]", headers.strip("{} ")))
    named = {
        pair[0].strip(" \"'").removeprefix("X-PH-"): pair[1].strip(" \"'") for pair in pairs if len(pair) == 2
    }
    return parameters(named)
