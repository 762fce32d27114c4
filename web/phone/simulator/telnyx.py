"""Telnyx media streaming in RTP mode, the carrier's side. It takes messages of 20 ms to 30 s of audio."""

from __future__ import annotations

import json

from web.phone.simulator.shape import (
    Clear,
    Mark,
    Message,
    NotAccepted,
    Order,
    Play,
    Shape,
    audio_of,
    encoded,
    fields,
)

STREAM, CALL = (
    "32de0dea-53cb-4b21-89a4-9e1819c043bc",
    "v3:T02llQxIyaRkhfRKxgAP8nY511EhFLizdvdUKJiSw8d6A9BborherQ",
)


class TelnyxShape(Shape):
    path = "/phone/telnyx"
    _sequence = 0
    _chunk = 0

    def opening(self) -> list[Message]:
        custom = self.dialled.all_parameters()
        caller = custom.pop("caller", "")
        start = {
            "user_id": "3e6f995f-85f7-4705-9741-53b116d28237",
            "call_control_id": CALL,
            "call_session_id": "ff55a038-6f5d-11ef-9692-02420aeffb1f",
            "from": caller,
            "to": "+15550100999",
            "tags": [],
            "client_state": "",
            "custom_parameters": custom,
            "media_format": {"encoding": "PCMU", "sample_rate": 8000, "channels": 1},
        }
        return [json.dumps({"event": "connected", "version": "1.0.0"}), self._event("start", start=start)]

    def media(self, payload: bytes, at_ms: int) -> Message:
        self._chunk += 1
        media = {
            "track": "inbound",
            "chunk": str(self._chunk),
            "timestamp": str(at_ms),
            "payload": encoded(payload),
        }
        return self._event("media", media=media)

    def digit(self, digit: str) -> Message:
        return self._event("dtmf", dtmf={"digit": digit})

    def marked(self, name: str) -> Message:
        return self._event("mark", mark={"name": name})

    def ending(self) -> list[Message]:
        return [self._event("stop", stop={"user_id": "3e6f995f", "call_control_id": CALL})]

    def read(self, message: Message) -> Order | None:
        told = fields(message, "event")
        match told["event"]:
            case "media":
                payload = audio_of(told["media"])
                if not 160 <= len(payload) <= 240_000:
                    raise NotAccepted(f"{len(payload)} bytes of audio")
                return Play(payload)
            case "mark":
                return Mark(told["mark"]["name"])
            case "clear":
                return Clear(marks_return=True)
        raise NotAccepted(f"the event {told['event']!r}")

    def _event(self, event: str, **more: object) -> str:
        self._sequence += 1
        return json.dumps(
            {"event": event, "sequence_number": str(self._sequence), "stream_id": STREAM, **more}
        )
