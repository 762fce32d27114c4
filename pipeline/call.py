"""One call: the caller's audio in, the agent's events out, and nothing left running when it ends.

The loop owns all state; stages run on worker threads. The caller's side (turns, revisions, the commit gate)
is in `pipeline.turns`, the agent's side in `pipeline.speaking`; this file joins them and keeps the call's
life.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Callable, Mapping

from pipeline.agent import Agent
from pipeline.audio import Audio
from pipeline.dialogue import Dialogue
from pipeline.events import CallEnded, CallEvent, CallFailed, Peer, PeerGone, ReplyAudio, TurnLogged
from pipeline.hearing.keypad import Keypad
from pipeline.hearing.microphone import Microphone
from pipeline.hearing.requests import RequestsBehindAudio
from pipeline.records import Records
from pipeline.speaking.hold_phrase import say_when_late
from pipeline.speaking.outbox import Outbox
from pipeline.speaking.reply import Replies
from pipeline.speaking.reply_player import Answer, ReplyPlayer
from pipeline.stages import StageFailed, Stages
from pipeline.tasks import CallTasks
from pipeline.telemetry.timeline import Timeline, TurnRecord
from pipeline.turns.drafting import Drafting
from pipeline.turns.idle_caller import IdleCaller
from pipeline.turns.last_answer import LastAnswer, says_goodbye
from pipeline.turns.turn import Turn
from pipeline.turns.turn_taking import TurnCommitted, TurnReport, TurnTaking

log = logging.getLogger("rejoinder.call")

_FAILURES = 2
"""Failed replies in a row after which the call ends."""

_TICK = 0.25
"""Seconds between looks at the deadlines; they are long, so a coarse look is exact enough."""


class Call:
    """One connection's conversation. `run` it once; everything else may be called from the loop at any
    time."""

    def __init__(
        self,
        stages: Stages,
        agent: Agent,
        peer: Peer,
        *,
        origin: str = "web",
        caller: str | None = None,
        variables: Mapping[str, str] | None = None,
        record: Callable[[TurnRecord], None] = lambda record: None,
        max_seconds: float = 1800.0,
    ) -> None:
        self.id = uuid.uuid4().hex[:12]
        self.agent = agent
        self.dialogue = Dialogue(agent.system_prompt(variables))
        self._stages = stages
        self._peer = peer
        self._origin = origin
        self._caller = caller
        self._record = record
        self._max_seconds = min(max_seconds, agent.max_call_seconds or max_seconds)
        self._end_reason: str | None = None
        self._ended = asyncio.Event()
        self._turns: dict[str, Turn] = {}  # by the id of the reply that answers them
        self._failures = 0
        self._last_answer = LastAnswer()
        self._keypad = Keypad()
        self._microphone = Microphone(self._now)
        self._requests = RequestsBehindAudio(self._microphone)
        self._tasks = CallTasks(failed=self._task_failed)
        self._outbox = Outbox(peer, sent=self._sent)
        self._replies = Replies(self.id, workers=stages.workers, voice=stages.voice, priority=stages.priority)
        self.player = ReplyPlayer(
            call_id=self.id,
            holds_playback=peer.holds_playback,
            emit=self._emit,
            clear_queued=self._outbox.clear,
            over=self._answer_over,
        )
        self._drafting = Drafting(
            stages=stages, agent=agent, dialogue=self.dialogue, replies=self._replies, tasks=self._tasks
        )
        self._turn_taking = TurnTaking(
            call_id=self.id,
            stages=stages,
            agent=agent,
            microphone=self._microphone,
            requests=self._requests,
            player=self.player,
            dialogue=self.dialogue,
            drafting=self._drafting,
            tasks=self._tasks,
            emit=self._emit,
            report=self._turn_reports,
        )

    # ---- the call's life

    async def run(self) -> None:
        """Talk until the call ends; then nothing of it is left running. Never raises for what a peer does."""
        now = self._now()
        self._records = Records(
            call_id=self.id, agent=self.agent.name, origin=self._origin, caller=self._caller, now=now
        )
        self._idle_caller = IdleCaller(self.agent.silence, now)
        self._drafting.open()
        try:
            async with self._tasks:
                self._tasks.start(self._send())
                self._tasks.start(self._turn_taking.listen())
                self._tasks.start(self._watch(began=now))
                self._tasks.start(self._drafting.prepare())
                await self._ended.wait()
                self._wind_up()
        finally:
            self._drafting.close()
        with contextlib.suppress(PeerGone):
            turn = self._turn_taking.number
            await self._peer.send(CallEnded(turn, 1, self._end_reason or "error"))
        log.info("call %s ended: %s", self.id, self._end_reason)

    def _end(self, reason: str) -> None:
        """End the call; the first reason counts."""
        if self._end_reason is None:
            self._end_reason = reason
            self._ended.set()
            self._requests.close()

    def _now(self) -> float:
        """The call's clock: the event loop's, in seconds."""
        return asyncio.get_running_loop().time()

    # ---- what the front end tells us

    def hear(self, audio: Audio) -> None:
        """The caller's audio: float32 mono at 16 kHz, any length. Never blocks."""
        self._microphone.hear(audio)

    def playback(self, reply_id: str, played_ms: float) -> None:
        """The peer reports how much of a reply it has played."""
        self.player.report_played(reply_id, played_ms)

    def truncate(self, reply_id: str, played_ms: float) -> None:
        """The peer says where it stopped a reply, perhaps after the call did: then the memory is amended."""
        amended = self.player.truncate(reply_id, played_ms)
        if amended is not None:
            self.dialogue.amend_agent(*amended)
            self._turn_taking.memory_amended()

    def digit(self, digit: str) -> None:
        """A key of the caller's telephone."""
        self._say_digits(self._keypad.press(digit, self._now()))

    def cancel_reply(self) -> None:
        """Stop speaking now."""
        self.player.stop()

    def respond(self) -> asyncio.Future[int | None]:
        """The client says that the caller's turn is over. Gives the number of the turn that is answered now,
        None where nothing was said. Cancelled when the call ends before."""
        return self._requests.add(self._turn_taking.commit_asked)

    def say_text(self, text: str) -> asyncio.Future[None]:
        """A typed message: a turn without speech. Cancelled when the call ends before."""
        return self._requests.add(lambda: self._turn_taking.typed(text.strip()) if text.strip() else None)

    @property
    def answering(self) -> int | None:
        """The turn whose answer is being made or said, 0 for what the agent says unasked; None while it has
        nothing to say."""
        if self._turn_taking.unrecognised is not None:
            return self._turn_taking.unrecognised.number
        return None if self.player.answer is None else self.player.answer.turn

    @property
    def active_reply(self) -> str | None:
        """Id of the reply that is being said."""
        return None if self.player.answer is None else self.player.answer.reply.id

    def hang_up(self, reason: str = "hang_up") -> None:
        self._end(reason)

    # ---- deadlines

    async def _watch(self, began: float) -> None:
        """Greet, then look after keys, the time limit and silence until the call ends."""
        self._say(self.agent.greeting)
        while True:
            await asyncio.sleep(_TICK)
            now = self._now()
            self._say_digits(self._keypad.due(now))
            if now - began >= self._max_seconds:
                self._end("max_length")
            turn = self._turn_taking.turn
            if self.player.answer is not None or (turn is not None and turn.told):
                self._idle_caller.talk_goes_on(now)
            elif turn is None and not self._last_answer.chosen:
                self._look_after_silence(now)

    def _look_after_silence(self, now: float) -> None:
        due = self._idle_caller.due(now)
        if due == "ask":
            self._say(self.agent.silence.text)
        elif due == "leave":
            farewell = self._say(self.agent.silence.farewell)
            if farewell is None:
                self._end("silence")
            else:
                self._last_answer.is_to_be(farewell, "silence")

    def _say_digits(self, digits: str) -> None:
        if digits:
            self.say_text("(on the keypad) " + " ".join(digits))

    # ---- replies

    def _say(self, text: str) -> Answer | None:
        """Say a fixed text unasked (greeting, are-you-there, farewell). Ends what is being said. An empty one
        is not said: None."""
        if not text.strip():
            return None
        self.player.stop()
        timeline = Timeline()
        reply = self._replies.new(timeline)
        reply.say(text)
        reply.release()
        self._tasks.start(reply.synthesise())
        answer = Answer(0, 0, reply, timeline)
        self._tasks.start(self.player.say(answer))
        self._turn_taking.agent_begins()
        return answer

    def _turn_reports(self, report: TurnReport) -> None:
        if isinstance(report, TurnCommitted):
            self._answer(report)
        else:
            self._log(self._records.abandoned(report.turn, report.reason))

    def _answer(self, committed: TurnCommitted) -> None:
        """A committed turn's words enter the memory, and its reply may be heard from now on."""
        turn, text = committed.turn, committed.text
        self.dialogue.caller_said(text)
        self._idle_caller.caller_spoke(self._now())
        reply = committed.revision.reply or self._drafting.draft(turn, committed.revision)
        reply.release()
        answer = Answer(turn.number, turn.revision, reply, turn.timeline, caller_text=text)
        if says_goodbye(text, self.agent.goodbyes):
            self._last_answer.is_to_be(answer, "goodbye")
        self.player.stop()
        self._turns[reply.id] = turn
        self._tasks.start(self.player.say(answer))
        if self.agent.hold_phrase.strip():
            self._tasks.start(self._hold(answer))
        self._turn_taking.agent_begins()

    async def _hold(self, answer: Answer) -> None:
        """Say the hold phrase when the answer is late. Raises StageFailed."""
        await say_when_late(
            answer.reply.sound,
            self.agent.hold_phrase,
            self.agent.hold_after_ms,
            voice=self._stages.voice,
            workers=self._stages.workers,
        )

    def _answer_over(self, answer: Answer) -> None:
        """The player is done with an answer: remember what was heard, log the turn, care for failures."""
        whole = answer.status in ("completed", "cut")
        exact = whole and answer.turn and answer.heard == answer.reply.text
        self.dialogue.agent_said(answer.heard, answer.reply.message_ids if exact else None)
        turn = self._turns.pop(answer.reply.id, None)
        if turn is not None:
            self._log(self._records.answered(turn, answer))
        if answer.status == "failed" and answer.reply.failure is not None:
            self._reply_failed(answer, answer.reply.failure)
        elif answer.status == "failed" and self._end_reason is None:
            self._unheard(answer)
        elif whole and answer.turn:
            self._failures = 0
        if reason := self._last_answer.over(answer):
            self._end(reason)

    def _reply_failed(self, answer: Answer, failure: StageFailed) -> None:
        log.error("call %s turn %d: %s", self.id, answer.turn, failure, exc_info=failure.cause)
        self._emit(CallFailed(answer.turn, answer.revision, failure.stage, str(failure.cause)))
        self._failures += 1
        hopeless = failure.stage == "tts" or isinstance(failure.cause, ArithmeticError)
        if hopeless or self._failures >= _FAILURES or self._end_reason is not None:
            self._end("error")
        else:
            self._say(self.agent.apology)

    def _unheard(self, answer: Answer) -> None:
        """Nothing of what was to be said had sound: the caller is told so, for they wait. A fixed phrase that
        the voice cannot say is left at that."""
        reply = answer.reply
        log.warning(
            "call %s turn %d: nothing of %s could be heard: %d characters, %d tokens of thoughts",
            self.id,
            answer.turn,
            "the answer" if answer.turn else "a fixed phrase",
            len(reply.text.strip()),
            reply.stats.get("thinking_tokens", 0),
        )
        if answer.turn:
            stage = "tts" if any(map(str.isalnum, reply.text)) else "llm"
            self._emit(CallFailed(answer.turn, answer.revision, stage, "the answer had nothing to hear"))
            self._say(self.agent.apology)

    # ---- inside

    def _emit(self, event: CallEvent) -> None:
        try:
            self._outbox.put(event)
        except PeerGone:
            self._end("peer_gone")

    async def _send(self) -> None:
        try:
            await self._outbox.run()
        except PeerGone:
            self._end("peer_gone")

    def _task_failed(self, error: Exception) -> None:
        """A failure of the call's own work ends it with an error, never with silence."""
        log.error("call %s failed", self.id, exc_info=error)
        failure = error if isinstance(error, StageFailed) else StageFailed("pipeline", error)
        turn, revision = self._turn_taking.number, self._turn_taking.revision
        self._emit(CallFailed(turn, revision, failure.stage, str(failure.cause)))
        self._end("error")

    def _sent(self, event: CallEvent) -> None:
        """The reply's own first sample counts as its audio, not a hold phrase before it."""
        answer = self.player.answer
        if isinstance(event, ReplyAudio) and answer is not None and answer.reply.id == event.reply_id:
            end = event.offset_ms / 1000 * event.rate + event.samples.size
            if end > answer.reply.sound.filler_samples:
                answer.timeline.mark("audio_sent", self._now())

    def _log(self, record: TurnRecord) -> None:
        self._record(record)
        self._emit(TurnLogged(record.turn, record.revision, record.as_dict()))

    def _wind_up(self) -> None:
        """Stop everything; rows are written also for what the end cut off."""
        reason = self._end_reason or "error"
        self.player.stop("interrupted" if reason in ("hang_up", "peer_gone", "shutdown") else "failed")
        for turn in self._turn_taking.close():
            self._log(self._records.abandoned(turn, reason))
        self._tasks.start(self._flush())

    async def _flush(self) -> None:
        self._tasks.cancel_others()
        if self._end_reason != "peer_gone":
            with contextlib.suppress(PeerGone):
                await self._outbox.drain()
