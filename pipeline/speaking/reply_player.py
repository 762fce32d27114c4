"""The agent's side of a call: the one reply that may be heard now, its pauses, its end, and what of it was
heard."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from pipeline.audio import Audio
from pipeline.events import (
    CallEvent,
    ClearPlayback,
    PausePlayback,
    ReplyAudio,
    ReplyDone,
    ReplyMark,
    ReplyStarted,
    ReplyText,
    ResumePlayback,
)
from pipeline.speaking.playout import Playout
from pipeline.speaking.reply import Reply
from pipeline.speaking.reply_sound import TimedSentence
from pipeline.telemetry.timeline import Timeline

_MARK_EVERY_MS = 500.0
"""Marks this often in the reply's audio, so that a carrier's echo places the heard text within half a
second."""


@dataclass(slots=True)
class Answer:
    """One reply that is, or was, on its way to the caller. `turn` 0: said unasked."""

    turn: int
    revision: int
    reply: Reply
    timeline: Timeline
    caller_text: str = ""
    draft_fate: str = "none"
    status: str = ""
    heard: str = ""
    false_interruptions: int = 0
    echoes: int = 0


class ReplyPlayer:
    """At most one answer at a time. `over(answer)` is called once for each, when it is completed or
    stopped."""

    def __init__(
        self,
        *,
        call_id: str,
        holds_playback: bool,
        emit: Callable[[CallEvent], None],
        clear_queued: Callable[[str], None],
        over: Callable[[Answer], None],
    ) -> None:
        self._call_id = call_id
        self._holds_playback = holds_playback
        self._emit = emit
        self._clear_queued = clear_queued
        self._over = over
        self._answer: Answer | None = None
        self._playout: Playout | None = None
        self._sounded: Playout | None = None
        self._interrupted: tuple[Answer, float] | None = None  # the last answer, and how much of it was sent
        self._next_mark_ms = 0.0

    @property
    def answer(self) -> Answer | None:
        """The answer that is being said, None when the agent is quiet."""
        return self._answer

    @property
    def paused(self) -> bool:
        return self._playout is not None and self._playout.paused

    @property
    def says(self) -> str:
        """The text of the running answer as far as it has been made, for telling echo from speech."""
        return self._answer.reply.sound.text if self._answer is not None else ""

    def say(self, answer: Answer) -> Coroutine[Any, Any, None]:
        """Open the gate: the answer is being said from now on. To be run as a task of the call, which sends
        it until it is over."""
        playout = Playout(
            answer.reply.sound,
            send_audio=lambda samples, offset: self._send_audio(answer, samples, offset),
            begin_sentence=lambda sentence: self._begin_sentence(answer, sentence),
        )
        self._answer, self._playout, self._sounded = answer, playout, playout
        self._next_mark_ms = _MARK_EVERY_MS
        self._emit(ReplyStarted(answer.turn, answer.revision, answer.reply.id))
        return self._play(answer, playout)

    async def _play(self, answer: Answer, playout: Playout) -> None:
        await playout.run()
        if self._answer is answer:
            if answer.reply.failure is not None or not playout.sound.sounds:
                self._end(answer, "failed")
            else:
                self._end(answer, "cut" if answer.reply.cut else "completed")

    def pause(self) -> None:
        """The caller speaks: fall silent, but keep the place."""
        if self._answer is None or self._playout is None or self._playout.paused:
            return
        self._playout.pause()
        event = PausePlayback if self._holds_playback else ClearPlayback
        self._clear_if_not_held(self._answer)
        self._emit(event(self._answer.turn, self._answer.revision, self._answer.reply.id))

    def resume(self) -> None:
        """It was no interruption: go on from where the caller stopped hearing us."""
        if self._answer is None or self._playout is None or not self._playout.paused:
            return
        self._answer.false_interruptions += 1
        if not self._holds_playback:
            self._next_mark_ms = self._playout.played_seconds() * 1000 + _MARK_EVERY_MS
        self._playout.resume(rewind=not self._holds_playback)
        if self._holds_playback:
            self._emit(ResumePlayback(self._answer.turn, self._answer.revision, self._answer.reply.id))

    def stop(self, status: str = "interrupted") -> Answer | None:
        """End the running answer for good; the heard text is settled here. Returns the answer, if there was
        one."""
        answer, playout = self._answer, self._playout
        if answer is None or playout is None:
            self._interrupted = None  # whoever stops a quiet player is about to say something else
            return None
        playout.pause()
        answer.timeline.mark("interrupted", asyncio.get_running_loop().time())
        self._clear_queued(answer.reply.id)
        self._emit(ClearPlayback(answer.turn, answer.revision, answer.reply.id))
        self._end(answer, status)
        answer.reply.cancel()
        playout.stop()
        return answer

    def played_around(self, at: float, before: float, after: float) -> tuple[Audio, int] | None:
        """What was played around loop time `at` of what was said last, and its rate (see
        `Playout.played_around`)."""
        sounded = self._sounded
        return None if sounded is None else (sounded.played_around(at, before, after), sounded.sound.rate)

    def report_played(self, reply_id: str, played_ms: float) -> None:
        """The peer's report of what it has played; reports of other replies are stale and dropped."""
        if self._answer is not None and self._playout is not None and self._answer.reply.id == reply_id:
            self._playout.report_played(played_ms / 1000)
            sound = self._answer.reply.sound
            played = min(played_ms / 1000, self._playout.sent_seconds)  # a peer may round up
            filler_seconds = sound.filler_samples / sound.rate
            if played > filler_seconds:  # a hold phrase before it is not the answer
                heard = self._playout.played_at(filler_seconds, played=played)
                # Asterisk counts a frame as played when it begins to play it.
                heard = max(heard, self._answer.timeline.at("audio_sent") or heard)
                self._answer.timeline.mark("audio_heard", heard)

    def truncate(self, reply_id: str, played_ms: float) -> tuple[str, str] | None:
        """The peer's word on where it stopped a reply: like a report, or, for the answer that was interrupted
        last, its heard text (before, now) if that changes."""
        if self._answer is not None or self._interrupted is None:
            self.report_played(reply_id, played_ms)
            return None
        answer, sent_seconds = self._interrupted
        before = answer.heard
        if answer.reply.id == reply_id:
            answer.heard = answer.reply.sound.heard_text(min(played_ms / 1000, sent_seconds))
        return (before, answer.heard) if answer.heard != before else None

    def _end(self, answer: Answer, status: str) -> None:
        assert self._playout is not None
        sound = answer.reply.sound
        answer.status = status
        answer.heard = (
            sound.said if status in ("completed", "cut") else sound.heard_text(self._playout.played_seconds())
        )
        if status in ("completed", "cut"):
            answer.timeline.mark("reply_end", asyncio.get_running_loop().time())
        self._interrupted = (answer, self._playout.sent_seconds) if status == "interrupted" else None
        self._answer, self._playout = None, None
        self._emit(
            ReplyDone(answer.turn, answer.revision, answer.reply.id, status, answer.reply.text, answer.heard)
        )
        self._over(answer)

    async def _send_audio(self, answer: Answer, samples: Audio, offset_ms: float) -> None:
        sound = answer.reply.sound
        self._emit(ReplyAudio(answer.turn, answer.revision, answer.reply.id, samples, sound.rate, offset_ms))
        end_ms = offset_ms + samples.size / sound.rate * 1000
        if end_ms >= self._next_mark_ms or (sound.complete and end_ms >= sound.seconds * 1000 - 1):
            self._next_mark_ms = end_ms + _MARK_EVERY_MS
            name = f"{self._call_id}.{answer.turn}.{answer.revision}.{answer.reply.id}.{round(end_ms)}"
            self._emit(ReplyMark(answer.turn, answer.revision, answer.reply.id, name))

    async def _begin_sentence(self, answer: Answer, sentence: TimedSentence) -> None:
        self._emit(ReplyText(answer.turn, answer.revision, answer.reply.id, sentence.text))

    def _clear_if_not_held(self, answer: Answer) -> None:
        if not self._holds_playback:
            self._clear_queued(answer.reply.id)
