"""Vonage Voice websockets: binary frames of linear PCM both ways, JSON for the rest.

A `notify` comes back with its payload once the audio before it was played: it serves as the mark.
"""

from __future__ import annotations

import re
from typing import Any

from web.phone.encodings import Encoding
from web.phone.wire import (
    BadMessage,
    Carrier,
    Heard,
    Inbound,
    Message,
    Played,
    Pressed,
    Started,
    compact,
    json_object,
    parameters,
    part,
    text,
)

_RATES = (8000, 16000, 24000)
_CONTENT_TYPE = re.compile(r"audio/l16\s*;\s*rate=(\d{1,6})", re.IGNORECASE)
_OF_THE_EVENT = ("event", "content-type")


class Vonage(Carrier):
    name = "vonage"

    def read(self, message: Message) -> Inbound | None:
        if isinstance(message, bytes):
            return Heard(message)
        told = json_object(message)
        match told.get("event"):
            case "websocket:connected":
                return _start(told)
            case "websocket:dtmf":
                return Pressed(text(told, "digit"))
            case "websocket:notify":
                return Played(text(part(told, "payload"), "mark"))
        return None

    def audio(self, frame: bytes) -> Message:
        return frame

    def mark(self, name: str) -> list[Message]:
        return [compact({"action": "notify", "payload": {"mark": name}})]

    def clear(self) -> list[Message]:
        return [compact({"action": "clear"})]


def _start(connected: dict[str, Any]) -> Started:
    """The NCCO's `headers` stand beside the event's own fields."""
    content_type = text(connected, "content-type")
    found = _CONTENT_TYPE.fullmatch(content_type)
    if found is None or int(found[1]) not in _RATES:
        raise BadMessage(f"media in {content_type!r}; set content-type to audio/l16;rate=16000")
    encoding = Encoding("l16", int(found[1]))
    custom = parameters({name: value for name, value in connected.items() if name not in _OF_THE_EVENT})
    call = custom.pop("uuid", "")
    return Started(
        stream_id=call,
        call_id=call,
        hears=encoding,
        speaks=encoding,
        caller=custom.pop("caller", None),
        agent=custom.pop("agent", None),
        variables=custom,
    )
