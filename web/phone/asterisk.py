"""Asterisk's chan_websocket: binary frames of the channel's codec, and control as JSON (`f(json)` in the dial
string, from 20.18, 22.8 and 23.2 on) or as the older plain text, answered in kind.

It is the one carrier that can pause and go on. It takes text messages of 128 bytes at most. The driver is in
Asterisk since 20.16, 21.11, 22.6 and 23.0. Marks came with JSON, and none of 21 has either; without them
the call's clock tells what has been heard.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from web.phone.encodings import ALAW, MULAW, Encoding
from web.phone.wire import (
    BadMessage,
    Carrier,
    Heard,
    Inbound,
    Message,
    Played,
    Pressed,
    Problem,
    Started,
    compact,
    json_object,
    parameters,
    text,
)

_FORMATS = {
    "ulaw": MULAW,
    "alaw": ALAW,
    "slin": Encoding("l16", 8000),
    "slin12": Encoding("l16", 12000),
    "slin16": Encoding("l16", 16000),
    "slin24": Encoding("l16", 24000),
    "slin48": Encoding("l16", 48000),
}


class Asterisk(Carrier):
    """`query`: the parameters of the socket's address, which the dial string's `v(...)` sets; they are the
    call's variables, and `agent` and `caller` among them mean what they say."""

    name = "asterisk"
    holds_playback = True

    def __init__(self, query: Mapping[str, str] | None = None) -> None:
        self._query = dict(query or {})
        self._json = True

    def read(self, message: Message) -> Inbound | None:
        if isinstance(message, bytes):
            return Heard(message)
        self._json = message.lstrip().startswith("{")
        told = json_object(message) if self._json else _plain(message)
        match told.get("event"):
            case "MEDIA_START":
                return self._start(told)
            case "DTMF_END":
                return Pressed(text(told, "digit"))
            case "MEDIA_MARK_PROCESSED":
                return Played(text(told, "correlation_id"))
            case "ERROR":
                return Problem(text(told, "error_text"))
        return None

    def _start(self, start: dict[str, Any]) -> Started:
        named = text(start, "format")
        if named not in _FORMATS:
            raise BadMessage(f"media in {named!r}; use c(ulaw) or c(slin16) in the dial string")
        custom = parameters(start.get("channel_variables")) | parameters(self._query)
        return Started(
            stream_id=text(start, "connection_id"),
            call_id=text(start, "channel_id", "channel"),
            hears=_FORMATS[named],
            speaks=_FORMATS[named],
            caller=custom.pop("caller", None),
            agent=custom.pop("agent", None),
            variables=custom,
        )

    def audio(self, frame: bytes) -> Message:
        return frame

    def mark(self, name: str) -> list[Message]:
        return [self._command("MARK_MEDIA", name)]

    def clear(self) -> list[Message]:
        """Some versions stay paused after a flush."""
        return [self._command("FLUSH_MEDIA"), self._command("CONTINUE_MEDIA")]

    def pause(self) -> list[Message]:
        return [self._command("PAUSE_MEDIA")]

    def resume(self) -> list[Message]:
        return [self._command("CONTINUE_MEDIA")]

    def hang_up(self) -> list[Message]:
        return [self._command("HANGUP")]

    def _command(self, name: str, correlation_id: str | None = None) -> str:
        if not self._json:
            return name if correlation_id is None else f"{name} {correlation_id}"
        wanted = {"command": name}
        return compact(wanted if correlation_id is None else wanted | {"correlation_id": correlation_id})


def _plain(message: str) -> dict[str, Any]:
    """`EVENT name:value name:value`, or `EVENT correlation_id`; an error's text is the rest of its line."""
    message, _, error_text = message.partition(" error_text:")
    event, *rest = message.split() or [""]
    if event == "MEDIA_MARK_PROCESSED":
        return {"event": event, "correlation_id": " ".join(rest)}
    if event == "ERROR":
        return {"event": event, "error_text": error_text}
    return {"event": event, **dict(word.split(":", 1) for word in rest if ":" in word)}
