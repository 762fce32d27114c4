"""Vonage Voice websockets, the carrier's side: linear PCM at 16 kHz in binary frames of 20 ms."""

from __future__ import annotations

import json

from web.phone.encodings import Encoding
from web.phone.simulator.shape import Clear, Mark, Message, NotAccepted, Order, Play, Shape, fields

CALL = "aaaaaaaa-bbbb-4ccc-8ddd-0123456789ab"


class VonageShape(Shape):
    path = "/phone/vonage"
    encoding = Encoding("l16", 16000)

    def opening(self) -> list[Message]:
        given = self.dialled.all_parameters() | {"uuid": CALL}
        opened = {"event": "websocket:connected", "content-type": "audio/l16;rate=16000", **given}
        return [json.dumps(opened)]

    def media(self, payload: bytes, at_ms: int) -> Message:
        return payload

    def digit(self, digit: str) -> Message:
        return json.dumps({"event": "websocket:dtmf", "digit": digit, "duration": 260})

    def marked(self, name: str) -> Message:
        return json.dumps({"event": "websocket:notify", "payload": {"mark": name}})

    def cleared(self) -> list[Message]:
        return [json.dumps({"event": "websocket:cleared"})]

    def read(self, message: Message) -> Order | None:
        if isinstance(message, bytes):
            if len(message) != self.encoding.frame_bytes:
                raise NotAccepted(f"a frame of {len(message)} bytes")
            return Play(message)
        told = fields(message, "action")
        match told["action"]:
            case "notify":
                return Mark(told["payload"]["mark"])
            case "clear":
                return Clear(marks_return=False)
        raise NotAccepted(f"the action {told['action']!r}")
