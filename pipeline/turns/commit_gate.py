"""From the caller's silence to the commit: the answer is drafted meanwhile, and only the commit lets it
out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeVar

from asr.recogniser import Transcript
from pipeline.events import SpeechStopped, TranscriptDone
from pipeline.hearing.audio_clock import RATE
from pipeline.hearing.interruption import words
from pipeline.speaking.reply import StageFailed
from pipeline.speaking.reply_player import Answer
from pipeline.turns.drafting import Drafting
from pipeline.turns.expected_answer import expecting
from pipeline.turns.policy import required_silence_ms
from pipeline.turns.turn import Attempt, Turn

if TYPE_CHECKING:
    from pipeline.call import Call
    from pipeline.turns.turn_taking import Listener

T = TypeVar("T")

_ANTICIPATION_MS = 64.0
"""Silence after which the answer is begun when there is room: two frames, which is when voice activity takes
it for one and no stop in a word."""

_MOST_RETRIES = 8
"""Refuted drafts of one turn after which none is made any more: this caller pauses for thought."""

_STALLED_SECONDS = 0.3
"""Added to the required silence when the peer has stopped sending audio after the caller went quiet."""


class CommitGate:
    """Runs the attempts of the caller's turns. The listener says when the caller is quiet and owns the
    turn."""

    def __init__(self, call: Call, listener: Listener, drafting: Drafting) -> None:
        self._call = call
        self._listener = listener
        self._drafting = drafting
        self._policy = call.agent.patience.policy

    def quiet(self, turn: Turn, silence_ms: float) -> None:
        """The caller has been quiet for so long."""
        if turn.attempt is None and silence_ms >= self._attempt_after_ms(turn):
            self._begin_attempt(turn)
        attempt = turn.attempt
        if attempt is not None and not attempt.soft_ended and silence_ms >= self._policy.soft_end_ms:
            self._soft_end(turn, attempt)
        if attempt is not None and attempt.reply is None and turn.draft_skipped is not None:
            self._draft_if_room(turn, attempt)
        self._consider(turn, silence_ms)

    def commit(self, turn: Turn, attempt: Attempt) -> None:
        """The turn is over: the gate opens. What was drafted may be heard; the words enter the memory."""
        turn.committed = True
        turn.timeline.mark("commit", self._call.now())
        self._listener.turn_is_over(turn)
        quiet = turn.quiet_since if turn.quiet_since is not None else self._listener.microphone.end
        self._call.emit(SpeechStopped(turn.number, turn.revision, quiet * 1000 // RATE))
        if attempt.transcript is None:
            self._listener.unrecognised = turn
            self._call.start(self._answer_late(turn, attempt))
        else:
            self._answer(turn, attempt, attempt.transcript)

    # ---- the attempt

    def _attempt_after_ms(self, turn: Turn) -> float:
        """When the answer is begun: at the soft end, or before it when drafts may be wasted."""
        soft_end = self._policy.soft_end_ms
        return min(_ANTICIPATION_MS, soft_end) if self.may_anticipate(turn) else soft_end

    def may_anticipate(self, turn: Turn) -> bool:
        """Whether there is room for work on an answer before the soft end."""
        stages = self._call.stages
        return stages.speculate and stages.anticipate and not turn.over_agent and self._no_draft(turn) is None

    def _begin_attempt(self, turn: Turn) -> None:
        """The caller went quiet: the detector is asked; with drafting the final recognition starts beside it,
        and then the reply, which finds both cores free. Speech over the agent is always recognised now: the
        agent waits to know what it was."""
        attempt = turn.begin_attempt()
        self._drafting.stop_prefill()
        self._listener.mark_speech(turn)
        attempt.detection = self._call.start(self._detect(turn, attempt))
        if self._call.stages.speculate or turn.over_agent:
            attempt.recognition = self._call.start(self._final(turn, attempt))

    def _soft_end(self, turn: Turn, attempt: Attempt) -> None:
        """Quiet for long enough to judge whether the turn is over."""
        attempt.soft_ended = True
        turn.timeline.mark("soft_end", self._call.now())
        self._call.start(self._judge(turn, attempt))

    async def _final(self, turn: Turn, attempt: Attempt) -> None:
        """The final transcript of this revision; starts its draft when there is something to answer."""
        transcript = await self._transcript(turn, attempt)
        if not self._alive(turn, attempt):
            return
        said = bool(words(transcript.text))
        if not said and not attempt.soft_ended:
            return  # too early to tell: recognition is repeated at the soft end
        attempt.transcript = transcript
        turn.timeline.mark("asr_final", self._call.now())
        if turn.over_agent and not self._interrupts(turn, transcript):
            return
        if not said:
            self._listener.drop(turn)
        elif self._call.stages.speculate:
            self._draft_if_room(turn, attempt)

    def _interrupts(self, turn: Turn, transcript: Transcript) -> bool:
        probabilities = [word.probability for word in transcript.words]
        confidence = fmean(probabilities) if probabilities else 0.0
        verdict = self._listener.weigh(turn, transcript.text, final=True, confidence=confidence)
        return verdict == "stop"

    def _draft_if_room(self, turn: Turn, attempt: Attempt) -> None:
        turn.draft_skipped = self._no_draft(turn)
        if turn.draft_skipped is None:
            self._drafting.draft(turn, attempt)

    def _no_draft(self, turn: Turn) -> str | None:
        """Why nothing is drafted now: see `Service.no_draft_because`, or `retries`."""
        return "retries" if turn.refutations >= _MOST_RETRIES else self._call.stages.no_draft_because()

    async def _detect(self, turn: Turn, attempt: Attempt) -> None:
        """How much the turn sounds finished."""
        audio = self._listener.microphone.since(turn.start)
        detector = self._call.stages.end_of_turn
        attempt.probability = await self._run("end_of_turn", detector.probability, audio)

    async def _judge(self, turn: Turn, attempt: Attempt) -> None:
        """The detector's answer and the final words together say how long to wait."""
        assert attempt.detection is not None
        await asyncio.wait({attempt.detection})
        if attempt.recognition is not None:
            await asyncio.wait({attempt.recognition})
            if attempt.transcript is None and self._alive(turn, attempt):
                await self._final(turn, attempt)
        if not self._alive(turn, attempt):
            return
        heard = attempt.transcript
        attempt.required_ms = required_silence_ms(
            self._policy,
            probability=attempt.probability,
            transcript=heard.text if heard is not None else "",
            closing=heard.closing if heard is not None else None,
            expecting=expecting(self._call.dialogue.last_agent_words),
            longest_pause_ms=turn.longest_pause_ms,
        )
        self._consider(turn, self._silence_ms(turn))
        await self._commit_without_audio(turn, attempt, attempt.required_ms)

    async def _transcript(self, turn: Turn, attempt: Attempt) -> Transcript:
        assert turn.utterance is not None
        return await self._run("asr", turn.utterance.finish, attempt.token)

    async def _run(self, pool: str, function: Callable[..., T], *arguments: Any) -> T:
        try:
            return await self._call.stages.workers.run(pool, function, *arguments)
        except Exception as error:
            raise StageFailed("asr", error) from error

    def _alive(self, turn: Turn, attempt: Attempt) -> bool:
        return self._listener.turn is turn and not attempt.token()

    # ---- the decision

    def _silence_ms(self, turn: Turn) -> float:
        assert turn.quiet_since is not None
        return (self._listener.microphone.end - turn.quiet_since) / RATE * 1000

    def _consider(self, turn: Turn, silence_ms: float) -> None:
        """Commit when the caller has been quiet for long enough and, with drafting, the words are known."""
        attempt = turn.attempt
        if attempt is None or turn.committed or turn.over_agent or not self._alive(turn, attempt):
            return
        known = attempt.transcript is not None or not self._call.stages.speculate
        required = self._policy.max_silence_ms if attempt.required_ms is None else attempt.required_ms
        if known and silence_ms >= required:
            self.commit(turn, attempt)

    async def _commit_without_audio(self, turn: Turn, attempt: Attempt, required_ms: float) -> None:
        """A peer that stops sending when the caller is quiet gives no frames: then the clock decides."""
        if turn.quiet_since is None:
            return
        due = self._listener.microphone.time_of(turn.quiet_since) + required_ms / 1000 + _STALLED_SECONDS
        await asyncio.sleep(max(0.0, due - self._call.now()))
        if not self._listener.microphone.waiting and self._alive(turn, attempt):
            self._consider(turn, required_ms)

    # ---- the answer

    async def _answer_late(self, turn: Turn, attempt: Attempt) -> None:
        """Without drafting the final recognition starts only now."""
        transcript = await self._transcript(turn, attempt)
        if self._listener.unrecognised is turn:
            self._listener.unrecognised = None
        turn.timeline.mark("asr_final", self._call.now())
        attempt.transcript = transcript
        if words(transcript.text):
            self._answer(turn, attempt, transcript)
        else:
            self._call.emit(TranscriptDone(turn.number, turn.revision, ""))

    def _answer(self, turn: Turn, attempt: Attempt, transcript: Transcript) -> None:
        text = transcript.text.strip()
        self._listener.tell_words(turn, "".join(word.text for word in transcript.words) or text)
        self._call.emit(TranscriptDone(turn.number, turn.revision, text))
        self._call.dialogue.caller_said(text)
        self._call.house_keeping.caller_spoke()
        reply = attempt.reply or self._drafting.draft(turn, attempt)
        reply.release()
        answer = Answer(turn.number, turn.revision, reply, turn.timeline, caller_text=text)
        self._call.house_keeping.goodbye_after(answer)
        self._call.answer(turn, answer)
