"""Twilio Media Streams, the carrier's side. Numbers are sent as text."""

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

STREAM, ACCOUNT, CALL = "MZ" + "1" * 32, "AC" + "2" * 32, "CA" + "3" * 32


class TwilioShape(Shape):
    path = "/phone/twilio"
    _sequence = 0
    _chunk = 0

    def opening(self) -> list[Message]:
        connected = json.dumps({"event": "connected", "protocol": "Call", "version": "1.0.0"})
        start = {
            "streamSid": STREAM,
            "accountSid": ACCOUNT,
            "callSid": CALL,
            "tracks": ["inbound"],
            "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
            "customParameters": self.dialled.all_parameters(),
        }
        return [connected, self._event("start", start=start)]

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
        return self._event("dtmf", dtmf={"track": "inbound_track", "digit": digit})

    def marked(self, name: str) -> Message:
        return self._event("mark", mark={"name": name})

    def ending(self) -> list[Message]:
        return [self._event("stop", stop={"accountSid": ACCOUNT, "callSid": CALL})]

    def read(self, message: Message) -> Order | None:
        told = fields(message, "event", "streamSid")
        if told["streamSid"] != STREAM:
            raise NotAccepted(f"a message for the stream {told['streamSid']!r}")
        match told["event"]:
            case "media":
                return Play(audio_of(told["media"]))
            case "mark":
                return Mark(told["mark"]["name"])
            case "clear":
                return Clear(marks_return=True)
        raise NotAccepted(f"the event {told['event']!r}")

    def _event(self, event: str, **more: object) -> str:
        self._sequence += 1
        return json.dumps(
            {"event": event, "sequenceNumber": str(self._sequence), "streamSid": STREAM, **more}
        )
