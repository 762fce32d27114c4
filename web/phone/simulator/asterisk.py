"""Asterisk's chan_websocket with `c(ulaw)f(json)`, the channel driver's side.

Text messages are 128 bytes at most, binary ones 65500; what does not fill a frame of a message is dropped.
"""

from __future__ import annotations

import json

from web.phone.simulator.shape import (
    Clear,
    HangUp,
    Mark,
    Message,
    NotAccepted,
    Order,
    Pause,
    Play,
    Resume,
    Shape,
    fields,
)

CHANNEL = "1700000000.42"
LONGEST_TEXT, LONGEST_MEDIA = 128, 65_500


class AsteriskShape(Shape):
    path = "/phone/asterisk"

    def opening(self) -> list[Message]:
        start = {
            "connection_id": "e226e283-c90a-4ea9-9e37-389000b9ef47",
            "channel": "WebSocket/rejoinder/0x7f4",
            "channel_id": CHANNEL,
            "format": "ulaw",
            "optimal_frame_size": 160,
            "ptime": 20,
            "channel_variables": self.dialled.all_parameters(),
        }
        return [json.dumps({"event": "MEDIA_START", **start})]

    def media(self, payload: bytes, at_ms: int) -> Message:
        return payload

    def digit(self, digit: str) -> Message:
        return self._event("DTMF_END", digit=digit)

    def marked(self, name: str) -> Message:
        return self._event("MEDIA_MARK_PROCESSED", correlation_id=name)

    def read(self, message: Message) -> Order | None:
        if isinstance(message, bytes):
            if len(message) % self.encoding.frame_bytes or len(message) > LONGEST_MEDIA:
                raise NotAccepted(f"{len(message)} bytes of media")
            return Play(message)
        if len(message.encode()) > LONGEST_TEXT:
            raise NotAccepted(f"a text message of {len(message.encode())} bytes")
        told = fields(message, "command")
        match told["command"]:
            case "MARK_MEDIA":
                return Mark(told["correlation_id"])
            case "FLUSH_MEDIA":
                return Clear(marks_return=False)
            case "PAUSE_MEDIA":
                return Pause()
            case "CONTINUE_MEDIA":
                return Resume()
            case "HANGUP":
                return HangUp()
        raise NotAccepted(f"the command {told['command']!r}")

    def _event(self, event: str, **more: object) -> str:
        return json.dumps({"event": event, "channel_id": CHANNEL, **more})
