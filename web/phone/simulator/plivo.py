"""Plivo audio streaming, the carrier's side. A checkpoint that was cleared does not come back."""

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

STREAM, CALL, ACCOUNT = (
    "b77e037d-4119-44b5-902d-25826b654539",
    "5cc3a8ce-84f0-4a8d-9a2f-2e8d6b1d8f20",
    "MAXXXXXX",
)
_STARTED_MS = 1_705_312_200_000


class PlivoShape(Shape):
    path = "/phone/plivo"
    _sequence = 0
    _chunk = 0

    def opening(self) -> list[Message]:
        given = self.dialled.all_parameters()
        headers = ";".join(f"{name}={value.lstrip('+')}" for name, value in given.items())
        start = {
            "callId": CALL,
            "streamId": STREAM,
            "accountId": ACCOUNT,
            "tracks": ["inbound"],
            "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000},
        }
        return [self._event("start", start=start, extra_headers=headers)]

    def media(self, payload: bytes, at_ms: int) -> Message:
        self._chunk += 1
        media = {
            "track": "inbound",
            "timestamp": str(_STARTED_MS + at_ms),
            "chunk": self._chunk,
            "payload": encoded(payload),
        }
        return self._event("media", streamId=STREAM, media=media)

    def digit(self, digit: str) -> Message:
        dtmf = {"track": "inbound", "digit": digit, "timestamp": str(_STARTED_MS)}
        return self._event("dtmf", streamId=STREAM, dtmf=dtmf)

    def marked(self, name: str) -> Message:
        return self._event("playedStream", streamId=STREAM, name=name)

    def cleared(self) -> list[Message]:
        return [self._event("clearedAudio", streamId=STREAM)]

    def ending(self) -> list[Message]:
        return [self._event("stop", streamId=STREAM)]

    def read(self, message: Message) -> Order | None:
        told = fields(message, "event")
        match told["event"]:
            case "playAudio":
                media = told["media"]
                if (media["contentType"], media["sampleRate"]) != ("audio/x-mulaw", 8000):
                    raise NotAccepted(
                        f"{media['contentType']} at {media['sampleRate']} Hz on a mu-law stream"
                    )
                return Play(audio_of(media))
            case "checkpoint":
                fields(message, "streamId", "name")
                return Mark(told["name"])
            case "clearAudio":
                fields(message, "streamId")
                return Clear(marks_return=False)
        raise NotAccepted(f"the event {told['event']!r}")

    def _event(self, event: str, **more: object) -> str:
        self._sequence += 1
        return json.dumps({"event": event, "sequenceNumber": self._sequence, **more})
