"""Twilio Media Streams, two-way (`<Connect><Stream>`): JSON with base64 mu-law at 8 kHz.

Marks come back when the audio before them was played, and all at once on a clear.
"""

from __future__ import annotations

from typing import Any

from web.phone.encodings import MULAW
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
    parameters,
    part,
    text,
)


class Twilio(Carrier):
    name = "twilio"

    def __init__(self) -> None:
        self._stream = ""

    def read(self, message: Message) -> Inbound | None:
        told = json_object(message)
        event = told.get("event")
        if event == "start":
            return self._start(part(told, "start"), text(told, "streamSid"))
        if event in ("media", "dtmf", "mark", "stop") and text(told, "streamSid") not in ("", self._stream):
            raise BadMessage(f"{event!r} of a stream that has not started")
        match event:
            case "media":
                return heard(part(told, "media"))
            case "dtmf":
                return Pressed(text(part(told, "dtmf"), "digit"))
            case "mark":
                return Played(text(part(told, "mark"), "name"))
            case "stop":
                return Stopped()
        return None

    def _start(self, start: dict[str, Any], stream: str) -> Started:
        stream = text(start, "streamSid") or stream
        if not stream:
            raise BadMessage("'start' without a streamSid")
        encoding = text(start.get("mediaFormat"), "encoding")
        if encoding not in ("", "audio/x-mulaw"):
            raise BadMessage(f"media in {encoding!r}; the stream must be audio/x-mulaw")
        self._stream = self._stream or stream
        custom = parameters(start.get("customParameters"))
        return Started(
            stream_id=stream,
            call_id=text(start, "callSid"),
            hears=MULAW,
            speaks=MULAW,
            account=text(start, "accountSid"),
            caller=custom.pop("caller", None),
            agent=custom.pop("agent", None),
            variables=custom,
        )

    def audio(self, frame: bytes) -> Message:
        media = {"payload": base64_text(frame)}
        return compact({"event": "media", "streamSid": self._stream, "media": media})

    def mark(self, name: str) -> list[Message]:
        return [compact({"event": "mark", "streamSid": self._stream, "mark": {"name": name}})]

    def clear(self) -> list[Message]:
        return [compact({"event": "clear", "streamSid": self._stream})]
