"""Telnyx media streaming in its two-way RTP mode: JSON with base64 G.711 at 8 kHz.

The order of media messages is not guaranteed, and the two directions may be encoded differently: the reply's
encoding is not told, so it is PCMU, Telnyx's default, unless the parameter `reply_codec` says PCMA.
"""

from __future__ import annotations

from typing import Any

from web.phone.encodings import ALAW, MULAW, Encoding
from web.phone.wire import (
    BadMessage,
    Carrier,
    Inbound,
    Message,
    Played,
    Pressed,
    Problem,
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

_ENCODINGS = {"PCMU": MULAW, "PCMA": ALAW}


class Telnyx(Carrier):
    name = "telnyx"

    def __init__(self) -> None:
        self._stream: str | None = None

    def read(self, message: Message) -> Inbound | None:
        told = json_object(message)
        event = told.get("event")
        stream = text(told, "stream_id")
        if event == "start":
            return self._start(part(told, "start"), stream)
        if event in ("media", "dtmf", "mark", "stop") and stream not in ("", self._stream):
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
            case "error":
                return Problem(str(told.get("payload") or told.get("error") or told)[:300])
        return None

    def _start(self, start: dict[str, Any], stream: str) -> Started:
        if self._stream is None:
            self._stream = stream
        custom = parameters(start.get("custom_parameters"))
        return Started(
            stream_id=stream,
            call_id=text(start, "call_control_id"),
            hears=_encoding(text(start.get("media_format"), "encoding") or "PCMU", "stream_codec"),
            speaks=_encoding(custom.pop("reply_codec", "PCMU"), "reply_codec"),
            account=text(start, "user_id"),
            caller=text(start, "from") or custom.pop("caller", None),
            agent=custom.pop("agent", None),
            variables=custom,
        )

    def audio(self, frame: bytes) -> Message:
        return compact({"event": "media", "media": {"payload": base64_text(frame)}})

    def mark(self, name: str) -> list[Message]:
        return [compact({"event": "mark", "mark": {"name": name}})]

    def clear(self) -> list[Message]:
        return [compact({"event": "clear"})]


def _encoding(name: str, setting: str) -> Encoding:
    if name not in _ENCODINGS:
        raise BadMessage(f"media in {name!r}; set {setting} to PCMU or PCMA")
    return _ENCODINGS[name]
