"""What a call tells its peer, as the protocol's server events. Pure: events in, JSON-able objects out."""

from __future__ import annotations

import base64
import itertools
from typing import Any

from pipeline import events
from pipeline.audio import Audio, StreamResampler
from web.realtime.client_events import BadEvent
from web.realtime.formats import describe
from web.realtime.session import Session

Wire = dict[str, Any]

_ENDINGS: dict[str, tuple[str, str | None]] = {
    "completed": ("completed", None),
    "interrupted": ("cancelled", "turn_detected"),
    "cut": ("incomplete", "max_output_tokens"),
    "failed": ("failed", None),
}
"""How a reply ended, in the pipeline's word: the protocol's status and reason."""


def caller_item(turn: int) -> str:
    """Item id of what the caller said in a turn."""
    return f"item_turn_{turn}"


def reply_item(reply_id: str) -> str:
    return f"item_{reply_id}"


def response(reply_id: str) -> str:
    return f"resp_{reply_id}"


def nothing_to_answer(event_id: str | None) -> BadEvent:
    """A response was asked for where there are no words to respond to."""
    return BadEvent(
        "nothing_to_answer", "there is nothing to answer: nothing was said or typed", event_id=event_id
    )


class Translator:
    """One connection's way out: the events' numbers, the audio's resampler, the order of the items."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._numbers = itertools.count(1)
        self._previous_item: str | None = None
        self._speech_began_ms: dict[int, int] = {}
        self._speech_seconds: dict[int, float] = {}
        self._resampler: StreamResampler | None = None
        self.replies: dict[str, str] = {}
        """Item id to reply id, of every reply so far."""
        self.asked_for: tuple[int, str | None] | None = None
        """The turn for whose answer the client has asked last, and its own id of that event."""
        self.cancelled_by_client: set[str] = set()

    def event(self, kind: str, **fields: Any) -> Wire:
        """A server event with its id."""
        return {"type": kind, "event_id": f"event_{next(self._numbers)}", **fields}

    def error(
        self, kind: str, code: str, message: str, *, param: str | None = None, event_id: str | None = None
    ) -> Wire:
        """The protocol's error event. `kind`: invalid_request_error or server_error."""
        error = {"type": kind, "code": code, "message": message, "param": param, "event_id": event_id}
        return self.event("error", error=error)

    def refusal(self, bad: BadEvent) -> Wire:
        """The error event for a message of the client."""
        return self.error(
            "invalid_request_error", bad.code, bad.message, param=bad.param, event_id=bad.event_id
        )

    def typed_message(self, item_id: str | None, text: str) -> list[Wire]:
        """A message that the client typed is part of the conversation; it may have brought its own id."""
        item: Wire = {
            "id": item_id or f"item_typed_{next(self._numbers)}",
            "object": "realtime.item",
            "type": "message",
            "status": "completed",
            "role": "user",
            "content": [{"type": "input_text", "text": text}],
        }
        previous, self._previous_item = self._previous_item, item["id"]
        return [
            self.event("conversation.item.added", previous_item_id=previous, item=item),
            self.event("conversation.item.done", previous_item_id=previous, item=item),
        ]

    def translate(self, event: events.CallEvent) -> list[Wire]:
        """The wire's events for one event of the call, in the order in which they are sent."""
        match event:
            case events.SpeechStarted(turn=turn, audio_ms=at):
                self._speech_began_ms.setdefault(turn, at)
                item = caller_item(turn)
                return [self.event("input_audio_buffer.speech_started", audio_start_ms=at, item_id=item)]
            case events.SpeechDismissed(turn=turn, audio_ms=at):
                self._speech_began_ms.pop(turn, None)
                item = caller_item(turn)
                return [self.event("rejoinder.speech_dismissed", audio_end_ms=at, item_id=item)]
            case events.SpeechStopped():
                return self._speech_stopped(event)
            case events.TranscriptDelta(turn=turn, text=text):
                return [self._transcription("delta", turn, delta=text)]
            case events.TranscriptDone():
                return self._transcript_done(event)
            case events.ReplyStarted():
                return self._reply_started(event)
            case events.ReplyText(reply_id=reply, text=text):
                return [self._of_reply("response.output_audio_transcript.delta", reply, delta=text)]
            case events.ReplyAudio():
                return self._reply_audio(event)
            case events.ReplyMark():
                return []  # a mark is for carriers; this wire's clients report what they have played
            case events.ReplyDone():
                return self._reply_done(event)
            case events.PausePlayback(reply_id=reply):
                return [self._playback("pause", reply)]
            case events.ResumePlayback(reply_id=reply):
                return [self._playback("resume", reply)]
            case events.ClearPlayback(reply_id=reply):
                return [self._playback("clear", reply)]
            case events.StageProgress(turn=turn, revision=revision, mark=mark, ms=ms):
                return [self.event("rejoinder.stage", turn=turn, revision=revision, mark=mark, ms=ms)]
            case events.TurnLogged(turn=turn, revision=revision, record=record):
                return [self.event("rejoinder.turn", turn=turn, revision=revision, record=record)]
            case events.CallFailed(stage=stage, message=message):
                return [self.error("server_error", f"{stage}_failed", message)]
            case events.CallEnded(reason=reason):
                return [self.event("rejoinder.call.ended", reason=reason)]

    def _speech_stopped(self, event: events.SpeechStopped) -> list[Wire]:
        item_id = caller_item(event.turn)
        previous, self._previous_item = self._previous_item, item_id
        began_ms = self._speech_began_ms.pop(event.turn, event.audio_ms)
        self._speech_seconds[event.turn] = (event.audio_ms - began_ms) / 1000
        item = _caller_message(item_id, transcript=None)
        return [
            self.event("input_audio_buffer.speech_stopped", audio_end_ms=event.audio_ms, item_id=item_id),
            self.event("input_audio_buffer.committed", previous_item_id=previous, item_id=item_id),
            self.event("conversation.item.added", previous_item_id=previous, item=item),
        ]

    def _transcript_done(self, event: events.TranscriptDone) -> list[Wire]:
        usage = {"type": "duration", "seconds": self._speech_seconds.pop(event.turn, 0.0)}
        item = _caller_message(caller_item(event.turn), transcript=event.text)
        wires = [
            self._transcription("completed", event.turn, transcript=event.text, usage=usage),
            self.event("conversation.item.done", previous_item_id=None, item=item),
        ]
        if not event.text and self.asked_for is not None and self.asked_for[0] == event.turn:
            wires.append(self.refusal(nothing_to_answer(self.asked_for[1])))
        return wires

    def _transcription(self, step: str, turn: int, **fields: Any) -> Wire:
        kind = f"conversation.item.input_audio_transcription.{step}"
        return self.event(kind, item_id=caller_item(turn), content_index=0, **fields)

    def _reply_started(self, event: events.ReplyStarted) -> list[Wire]:
        reply = event.reply_id
        item = _agent_message(reply, status="in_progress", transcript=None)
        previous, self._previous_item = self._previous_item, item["id"]
        self.replies[item["id"]] = reply
        part = {"type": "audio", "transcript": ""}
        return [
            self.event("response.created", response=self._response(reply, event.turn, "in_progress")),
            self.event("response.output_item.added", response_id=response(reply), output_index=0, item=item),
            self.event("conversation.item.added", previous_item_id=previous, item=item),
            self._of_reply("response.content_part.added", reply, part=part),
        ]

    def _reply_audio(self, event: events.ReplyAudio) -> list[Wire]:
        rates = (event.rate, self._session.output.rate)
        if self._resampler is None or (self._resampler.rate_in, self._resampler.rate_out) != rates:
            self._resampler = StreamResampler(*rates)
        return self._audio_delta(event.reply_id, self._resampler.push(event.samples))

    def _audio_delta(self, reply: str, samples: Audio) -> list[Wire]:
        if not len(samples):
            return []
        delta = base64.b64encode(self._session.output.encode(samples)).decode("ascii")
        return [self._of_reply("response.output_audio.delta", reply, delta=delta)]

    def _reply_done(self, event: events.ReplyDone) -> list[Wire]:
        reply = event.reply_id
        rest = self._end_of_audio(reply, dropped=event.status == "interrupted")
        status, reason = _ENDINGS[event.status]
        if reason == "turn_detected" and reply in self.cancelled_by_client:
            reason = "client_cancelled"
        self.cancelled_by_client.discard(reply)
        whole = "completed" if status == "completed" else "incomplete"
        item = _agent_message(reply, status=whole, transcript=event.text)
        part = {"type": "audio", "transcript": event.text}
        answer = self._response(reply, event.turn, status, output=[item], heard=event.heard)
        answer["status_details"] = {"type": status, "reason": reason}
        return [
            *rest,
            self._of_reply("response.output_audio.done", reply),
            self._of_reply("response.output_audio_transcript.done", reply, transcript=event.text),
            self._of_reply("response.content_part.done", reply, part=part),
            self.event("response.output_item.done", response_id=response(reply), output_index=0, item=item),
            self.event("conversation.item.done", previous_item_id=None, item=item),
            self.event("response.done", response=answer),
        ]

    def _end_of_audio(self, reply: str, *, dropped: bool) -> list[Wire]:
        """What the resampler still holds; it must not open the next reply."""
        rest = self._resampler.flush() if self._resampler is not None else None
        return [] if rest is None or dropped else self._audio_delta(reply, rest)

    def _of_reply(self, kind: str, reply: str, **fields: Any) -> Wire:
        place = {"item_id": reply_item(reply), "output_index": 0, "content_index": 0}
        return self.event(kind, response_id=response(reply), **place, **fields)

    def _playback(self, action: str, reply: str) -> Wire:
        return self.event(
            f"rejoinder.playback.{action}", response_id=response(reply), item_id=reply_item(reply)
        )

    def _response(
        self,
        reply: str,
        turn: int,
        status: str,
        *,
        output: list[Wire] | None = None,
        heard: str | None = None,
    ) -> Wire:
        """The protocol's response object; what the caller heard of it is ours."""
        ours: Wire = {"turn": turn} if heard is None else {"turn": turn, "heard": heard}
        return {
            "object": "realtime.response",
            "id": response(reply),
            "status": status,
            "output": output or [],
            "output_modalities": ["audio"],
            "audio": {"output": {"format": describe(self._session.output)}},
            "rejoinder": ours,
        }


def _caller_message(item_id: str, transcript: str | None) -> Wire:
    content = [{"type": "input_audio", "transcript": transcript}]
    return {
        "id": item_id,
        "object": "realtime.item",
        "type": "message",
        "status": "completed",
        "role": "user",
        "content": content,
    }


def _agent_message(reply: str, *, status: str, transcript: str | None) -> Wire:
    content = [] if transcript is None else [{"type": "output_audio", "transcript": transcript}]
    return {
        "id": reply_item(reply),
        "object": "realtime.item",
        "type": "message",
        "status": status,
        "role": "assistant",
        "content": content,
    }
