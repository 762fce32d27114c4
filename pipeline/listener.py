"""The caller's side of a call: turns, revisions, drafts behind the commit gate, and the commit."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from asr.recogniser import Transcript
from asr.vad import VoiceFrame
from llm.language_model import Sampling
from pipeline.audio_clock import RATE, AudioClock
from pipeline.events import Audio, SpeechStarted, SpeechStopped, TranscriptDelta, TranscriptDone
from pipeline.interruption import judge, words
from pipeline.mouth import Answer
from pipeline.reply import Reply, StageFailed
from pipeline.stages import Listening
from pipeline.turn import PREROLL_SECONDS, Attempt, RecentAudio, Turn
from pipeline.turn_policy import TurnPolicy, required_silence_ms
from pipeline.workers import CancelToken

if TYPE_CHECKING:
    from pipeline.call import Call

T = TypeVar("T")

log = logging.getLogger("rejoinder.call")

_BACKLOG_SECONDS = 10.0
"""Audio waiting to be listened to; a machine that is further behind drops what comes and says so."""

_STEP_SECONDS = 0.6
_STEP_SECONDS_OVER_AGENT = 0.3
"""New audio between recognition passes; shorter while the agent waits to know whether it is interrupted."""

_NOISE_SECONDS = 3.0
"""Speech over the agent without a word in it for that long is noise: the agent goes on."""

_STALLED_SECONDS = 0.3
"""Added to the required silence when the peer has stopped sending audio after the caller went quiet."""


class Listener:
    """Owns the running turn. All methods run on the loop; models run on the stages' workers."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.number = 1
        self.revision = 1
        self.turn: Turn | None = None
        self.dropped_seconds = 0.0
        self._clock = AudioClock()
        self._recent = RecentAudio()
        self._backlog: deque[Audio] = deque()
        self._backlog_samples = 0
        self._came = asyncio.Event()
        self._talk_lock = asyncio.Lock()
        self._prefill_token = CancelToken()
        self._deaf = False  # noise was judged to be noise: nothing is a turn until it stops
        self._recognition: asyncio.Task[None] | None = None
        patience = call.agent.patience
        defaults = TurnPolicy()
        self._policy = TurnPolicy(
            soft_end_ms=patience.soft_end_ms,
            min_silence_ms=patience.min_silence_ms or defaults.min_silence_ms,
            max_silence_ms=patience.max_silence_ms or defaults.max_silence_ms,
        )
        sampling = call.agent.sampling
        self._sampling = Sampling(**sampling.model_dump())

    # ---- audio in

    def hear(self, audio: Audio) -> None:
        """Take audio of any length; never blocks. Audio beyond the backlog's limit is dropped."""
        if not audio.size:
            return
        if self._backlog_samples + audio.size > _BACKLOG_SECONDS * RATE:
            self.dropped_seconds += audio.size / RATE
            log.warning(
                "call %s: listening is behind, %.1f s of audio lost", self._call.id, self.dropped_seconds
            )
            return
        self._clock.arrived(audio.size, self._call.now())
        self._backlog.append(audio)
        self._backlog_samples += audio.size
        self._came.set()

    async def listen(self) -> None:
        """Voice activity over what comes in; frames drive the turn."""
        activity = self._call.stages.vad.open()
        self._call.start(self._prefill())
        while True:
            await self._came.wait()
            self._came.clear()
            if not self._backlog:
                continue
            audio = np.concatenate(self._backlog)
            self._backlog.clear()
            self._backlog_samples = 0
            frames = await self._run("asr", "vad", activity.push, audio)
            self._recent.push(audio)
            if self.turn is not None:
                self.turn.feed(audio)
            for frame in frames:
                self._frame(frame)

    def _frame(self, frame: VoiceFrame) -> None:
        if frame.onset is not None:
            self._speech_began(frame.onset)
        if frame.offset is not None:
            self._deaf = False
            if self.turn is not None:
                self.turn.quiet_since = frame.offset
        turn = self.turn
        if turn is None or frame.speaking or turn.quiet_since is None:
            return
        silence_ms = (frame.end - turn.quiet_since) / RATE * 1000
        if not turn.soft_ended:
            if silence_ms >= self._policy.soft_end_ms:
                self._soft_end(turn)
        else:
            self._consider(turn, silence_ms)

    async def _run(self, stage: str, pool: str, function: Callable[..., T], *arguments: Any) -> T:
        """Run a stage's function on its threads. Raises StageFailed, which names the stage."""
        try:
            return await self._call.stages.workers.run(pool, function, *arguments)
        except Exception as error:
            raise StageFailed(stage, error) from error

    # ---- speech begins, goes on, pauses

    def _speech_began(self, onset: int) -> None:
        if self._deaf:
            return
        turn = self.turn
        if turn is not None:
            if turn.quiet_since is not None:
                turn.go_on((onset - turn.quiet_since) / RATE * 1000)
                self.revision = turn.revision
            return
        start, audio = self._recent.since(onset - round(PREROLL_SECONDS * RATE))
        turn = self._new_turn(start, onset)
        turn.timeline.mark("speech_start", self._clock.time_of(onset))
        turn.feed(audio)
        if self._call.mouth.answer is not None:
            turn.over_agent = True
            if self._call.agent.interruptions.mode != "off":
                self._call.mouth.pause()
            self._weigh(turn, "", final=False)
        else:
            self._tell_speech_started(turn)

    def _new_turn(self, start: int, onset: int) -> Turn:
        call = self._call
        utterance = call.stages.recogniser.open(hotwords=call.agent.hotwords)
        turn = Turn(self.number, self.revision, start, onset, utterance, call.emit)
        self.turn = turn
        self._recognition = call.start(self._recognise(turn, utterance))
        return turn

    def _tell_speech_started(self, turn: Turn) -> None:
        self._call.emit(SpeechStarted(turn.number, turn.revision, turn.onset * 1000 // RATE))

    async def _recognise(self, turn: Turn, utterance: Listening) -> None:
        """Partial hypotheses while the caller speaks. Committed words go to the peer; they are never taken
        back."""
        call = self._call
        while self.turn is turn:
            await turn.audio_for_step(_STEP_SECONDS_OVER_AGENT if turn.over_agent else _STEP_SECONDS)
            partial = await self._run("asr", "asr", utterance.step, turn.step_token)
            if self.turn is not turn or turn.step_token():
                continue
            committed = "".join(word.text for word in partial.committed)
            if turn.over_agent:
                self._weigh(turn, committed + partial.tentative, final=False)
            if not turn.over_agent:
                self._tell_words(turn, committed)
                if call.stages.speculate and committed:
                    call.start(self._prefill(committed))

    def _tell_words(self, turn: Turn, text: str) -> None:
        if text.startswith(turn.told) and len(text) > len(turn.told):
            self._call.emit(TranscriptDelta(turn.number, turn.revision, text[len(turn.told) :]))
            turn.told = text

    async def _prefill(self, growing: str = "") -> None:
        """Bring the model's cache up to the words so far, when nothing else uses it."""
        if self._talk_lock.locked() or not self._call.stages.room_for_drafts():
            return
        async with self._talk_lock:
            token = self._prefill_token = CancelToken()
            messages = self._call.dialogue.messages(growing.strip())
            await self._run("llm", "llm", self._call.talk.prefill, messages, token)

    # ---- speech over the agent

    def _weigh(self, turn: Turn, text: str, *, final: bool) -> Literal["wait", "resume", "stop"]:
        """Is this an interruption? Acts on the verdict."""
        mouth = self._call.mouth
        verdict = judge(
            self._call.agent.interruptions,
            text=text,
            final=final,
            agent_says=mouth.says,
            turn_is_over=mouth.answer is None,
        )
        if verdict == "wait" and not words(text) and turn.seconds > _NOISE_SECONDS:
            verdict = "resume"
            self._deaf = True
        if verdict == "stop":
            turn.over_agent = False
            mouth.stop()
            self._tell_speech_started(turn)
        elif verdict == "resume":
            self._drop(turn)
        return verdict

    def _drop(self, turn: Turn) -> None:
        """It was no turn: noise, or a listening noise. The agent goes on where it stopped."""
        self.turn = None
        turn.close()
        if self._recognition is not None:
            self._recognition.cancel()
        self.revision = turn.revision + 1
        self._call.mouth.resume()

    # ---- the soft end and the attempt

    def _soft_end(self, turn: Turn) -> None:
        assert turn.quiet_since is not None
        attempt = turn.soft_end()
        self._prefill_token.cancel()
        turn.timeline.mark("speech_end", self._clock.time_of(turn.quiet_since))
        turn.timeline.mark("soft_end", self._call.now())
        self._call.start(self._attempt(turn, attempt))

    async def _attempt(self, turn: Turn, attempt: Attempt) -> None:
        """Final recognition, end-of-turn judgement and, when drafting is on, the reply: all before commit."""
        call = self._call
        _, audio = self._recent.since(turn.start)
        judged = asyncio.ensure_future(
            self._run("asr", "end_of_turn", call.stages.end_of_turn.probability, audio)
        )
        try:
            if call.stages.speculate:
                await self._final(turn, attempt)
            probability = await judged
        finally:
            judged.cancel()
        if attempt.token() or self.turn is not turn:
            return
        attempt.required_ms = required_silence_ms(
            self._policy,
            probability=probability,
            transcript=attempt.transcript.text if attempt.transcript is not None else "",
            longest_pause_ms=turn.longest_pause_ms,
        )
        self._consider(turn, self._silence_ms(turn))
        await self._commit_without_audio(turn, attempt)

    async def _final(self, turn: Turn, attempt: Attempt) -> None:
        """The final transcript of this revision; starts its draft when there is something to answer."""
        transcript = await self._transcript(turn, attempt)
        if attempt.token() or self.turn is not turn:
            return
        attempt.transcript = transcript
        turn.timeline.mark("asr_final", self._call.now())
        if turn.over_agent and self._weigh(turn, transcript.text, final=True) != "stop":
            return
        if not words(transcript.text):
            self._drop(turn)
        elif self._call.stages.room_for_drafts():
            self._draft(turn, attempt)

    async def _transcript(self, turn: Turn, attempt: Attempt) -> Transcript:
        assert turn.utterance is not None
        return await self._run("asr", "asr", turn.utterance.finish, attempt.token)

    def _draft(self, turn: Turn, attempt: Attempt) -> Reply:
        """Start making the reply; nothing of it is sent before commit."""
        assert attempt.transcript is not None
        reply = attempt.reply = self._call.new_reply(turn.timeline, reusable=turn.reusable)
        messages = self._call.dialogue.messages()
        text = attempt.transcript.text.strip()
        if not turn.committed:
            messages = self._call.dialogue.messages(text)

        async def generate() -> None:
            async with self._talk_lock:
                draft = turn.refuted.ids if turn.refuted is not None else ()
                turn.refuted_tokens += len(draft)
                await reply.generate(self._call.talk, messages, self._sampling, draft)

        self._call.start(generate())
        self._call.start(reply.synthesise())
        return reply

    def _silence_ms(self, turn: Turn) -> float:
        assert turn.quiet_since is not None
        return (self._recent.end - turn.quiet_since) / RATE * 1000

    def _consider(self, turn: Turn, silence_ms: float) -> None:
        """Commit when the caller has been quiet for long enough and, with drafting, the words are known."""
        attempt = turn.attempt
        if attempt is None or turn.committed or turn.over_agent:
            return
        known = attempt.transcript is not None or not self._call.stages.speculate
        required = self._policy.max_silence_ms if attempt.required_ms is None else attempt.required_ms
        if known and silence_ms >= required:
            self._commit(turn, attempt)

    async def _commit_without_audio(self, turn: Turn, attempt: Attempt) -> None:
        """A peer that stops sending when the caller is quiet gives no frames to decide on: the clock
        decides."""
        if attempt.required_ms is None or turn.quiet_since is None:
            return
        due = self._clock.time_of(turn.quiet_since) + attempt.required_ms / 1000 + _STALLED_SECONDS
        await asyncio.sleep(max(0.0, due - self._call.now()))
        if self._backlog or (attempt.transcript is None and self._call.stages.speculate):
            return
        if self.turn is turn and turn.attempt is attempt and not turn.committed and not turn.over_agent:
            self._commit(turn, attempt)

    # ---- commit

    def _commit(self, turn: Turn, attempt: Attempt) -> None:
        """The turn is over: the gate opens. What was drafted may be heard; the words enter the memory."""
        turn.committed = True
        turn.timeline.mark("commit", self._call.now())
        self.turn = None
        self.number, self.revision = turn.number + 1, 1
        if self._recognition is not None:
            self._recognition.cancel()
        quiet = turn.quiet_since if turn.quiet_since is not None else self._recent.end
        self._call.emit(SpeechStopped(turn.number, turn.revision, quiet * 1000 // RATE))
        if attempt.transcript is None:
            self._call.start(self._answer_late(turn, attempt))
        else:
            self._answer(turn, attempt, attempt.transcript)

    async def _answer_late(self, turn: Turn, attempt: Attempt) -> None:
        """Without drafting the final recognition starts only now."""
        transcript = await self._transcript(turn, attempt)
        turn.timeline.mark("asr_final", self._call.now())
        attempt.transcript = transcript
        if words(transcript.text):
            self._answer(turn, attempt, transcript)
        else:
            self._call.emit(TranscriptDone(turn.number, turn.revision, ""))

    def _answer(self, turn: Turn, attempt: Attempt, transcript: Transcript) -> None:
        text = transcript.text.strip()
        self._tell_words(turn, transcript.text)
        self._call.emit(TranscriptDone(turn.number, turn.revision, text))
        self._call.dialogue.caller_said(text)
        self._call.house_keeping.caller_spoke(text)
        reply = attempt.reply or self._draft(turn, attempt)
        reply.release()
        answer = Answer(turn.number, turn.revision, reply, turn.timeline, caller_text=text)
        self._call.house_keeping.goodbye_after(answer)
        self._call.answer(turn, answer)

    # ---- turns that the client ends or types

    def commit_now(self) -> None:
        """The client says the caller's turn is over, whatever the silence."""
        turn = self.turn
        if turn is None or turn.over_agent:
            return
        if turn.quiet_since is None:
            turn.quiet_since = self._recent.end
        turn.timeline.mark("speech_end", self._clock.time_of(turn.quiet_since))
        self._commit(turn, turn.attempt or turn.soft_end())

    def typed(self, text: str) -> None:
        """A turn without speech. What the caller is saying meanwhile is dropped; so is what the agent
        says."""
        if (turn := self.turn) is not None:
            self._drop(turn)
            if turn.told:  # the peer has seen words of it: its number is used up
                self._call.abandoned(turn, "replaced")
                self.number, self.revision = turn.number + 1, 1
        self._call.mouth.stop()
        here = self._recent.end
        turn = Turn(self.number, self.revision, here, here, None, self._call.emit)
        attempt = turn.soft_end()
        attempt.transcript = Transcript(text, (), 0.0)
        self._commit(turn, attempt)

    def close(self) -> Turn | None:
        """The call ends. Returns the turn that was cut off, if the caller was in the middle of one."""
        turn, self.turn = self.turn, None
        self._prefill_token.cancel()
        if turn is not None:
            turn.close()
        return turn if turn is not None and not turn.over_agent else None
