"""One call: the caller's audio in, the agent's events out, and nothing left running when it ends.

The loop owns all state; stages run on worker threads. The caller's side (turns, revisions, the commit gate)
is in `pipeline.listener`, the agent's side in `pipeline.mouth`; this file joins them and keeps the call's
life.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from pipeline.agent import Agent
from pipeline.conversation import Dialogue
from pipeline.events import (
    Audio,
    CallEnded,
    CallEvent,
    CallFailed,
    Peer,
    PeerGone,
    ReplyAudio,
    TurnLogged,
)
from pipeline.house_keeping import HouseKeeping
from pipeline.listener import Listener
from pipeline.mouth import Answer, Mouth
from pipeline.outbox import Outbox
from pipeline.records import Records
from pipeline.reply import Reply, StageFailed
from pipeline.stages import Stages
from pipeline.timeline import Timeline, TurnRecord
from pipeline.turn import Turn

log = logging.getLogger("rejoinder.call")

_FAILURES = 2
"""Failed replies in a row after which the call ends."""


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
        self.stages = stages
        self.dialogue = Dialogue(agent.system_prompt(variables))
        self._peer = peer
        self._origin = origin
        self._caller = caller
        self._record = record
        self._end_reason: str | None = None
        self._ended = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._group: asyncio.TaskGroup | None = None
        self._turns: dict[str, Turn] = {}
        self._failures = 0
        self._replies = 0
        self.outbox = Outbox(peer, sent=self._sent)
        self.mouth = Mouth(
            call_id=self.id,
            holds_playback=peer.holds_playback,
            emit=self.emit,
            clear_queued=self.outbox.clear,
            over=self._answer_over,
        )
        self.listener = Listener(self)
        self.house_keeping = HouseKeeping(self, min(max_seconds, agent.max_call_seconds or max_seconds))

    # ---- the call's life

    async def run(self) -> None:
        """Talk until the call ends; then nothing of it is left running. Never raises for what a peer does."""
        self._records = Records(
            call_id=self.id, agent=self.agent.name, origin=self._origin, caller=self._caller, now=self.now()
        )
        self.talk = self.stages.language.open(
            tenant=self.agent.name,
            sentences=self.agent.sentences.policy(self.agent.language),
            verification=self.agent.speculation.verification,
        )
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                self.start(self._send())
                self.start(self.listener.listen())
                self.start(self.house_keeping.watch())
                await self._ended.wait()
                self._wind_up()
        finally:
            self.talk.close()
        with contextlib.suppress(PeerGone):
            turn = self.listener.number
            await self._peer.send(CallEnded(turn, 1, self._end_reason or "error"))
        log.info("call %s ended: %s", self.id, self._end_reason)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine as a task of this call; a failure ends the call with an error, never with
        silence."""
        assert self._group is not None
        task = self._group.create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def end(self, reason: str) -> None:
        """End the call; the first reason counts."""
        if self._end_reason is None:
            self._end_reason = reason
            self._ended.set()

    def now(self) -> float:
        """The call's clock: the event loop's, in seconds."""
        return asyncio.get_running_loop().time()

    def emit(self, event: CallEvent) -> None:
        try:
            self.outbox.put(event)
        except PeerGone:
            self.end("peer_gone")

    # ---- what the front end tells us

    def hear(self, audio: Audio) -> None:
        """The caller's audio: float32 mono at 16 kHz, any length. Never blocks."""
        self.listener.microphone.hear(audio)

    def playback(self, reply_id: str, played_ms: float) -> None:
        """The peer reports how much of a reply it has played."""
        self.mouth.report_played(reply_id, played_ms)

    def truncate(self, reply_id: str, played_ms: float) -> None:
        """The peer says where it stopped a reply, perhaps after the call did: then the memory is amended."""
        amended = self.mouth.truncate(reply_id, played_ms)
        if amended is not None:
            self.dialogue.amend_agent(*amended)
            self.listener.memory_amended()

    def digit(self, digit: str) -> None:
        """A key of the caller's telephone."""
        self.house_keeping.digit(digit)

    def cancel_reply(self) -> None:
        """Stop speaking now."""
        self.mouth.stop()

    def respond(self) -> None:
        """The client says that the caller's turn is over."""
        if not self._ended.is_set():
            self.listener.commit_now()

    def say_text(self, text: str) -> None:
        """A typed message: a turn without speech. One that comes when the call has ended is dropped."""
        if text.strip() and not self._ended.is_set():
            self.listener.typed(text.strip())

    def hang_up(self, reason: str = "hang_up") -> None:
        self.end(reason)

    # ---- replies

    def new_reply(self, timeline: Timeline, **reuse: Any) -> Reply:
        self._replies += 1
        return Reply(
            f"reply_{self.id}_{self._replies}",
            workers=self.stages.workers,
            voice=self.stages.voice,
            precedence=self.stages.precedence,
            timeline=timeline,
            **reuse,
        )

    def say(self, text: str) -> Answer:
        """Say a fixed text unasked (greeting, are-you-there, farewell). Ends what is being said."""
        self.mouth.stop()
        timeline = Timeline()
        reply = self.new_reply(timeline)
        reply.say(text)
        reply.release()
        self.start(reply.synthesise())
        answer = Answer(0, 0, reply, timeline)
        self.start(self.mouth.say(answer))
        self.listener.agent_begins()
        return answer

    def answer(self, turn: Turn, answer: Answer) -> None:
        """A committed turn's reply may be heard from now on."""
        self.mouth.stop()
        self._turns[answer.reply.id] = turn
        self.start(self.mouth.say(answer))
        self.start(self.house_keeping.hold(answer))
        self.listener.agent_begins()

    def abandoned(self, turn: Turn, reason: str) -> None:
        """A turn that will never be committed: its row is written all the same."""
        self._log(self._records.abandoned(turn, reason))

    def _answer_over(self, answer: Answer) -> None:
        """The mouth is done with an answer: remember what was heard, log the turn, care for failures."""
        whole = answer.status in ("completed", "cut")
        ids = answer.reply.ids if whole and answer.turn else ()
        self.dialogue.agent_said(answer.heard, ids or None)
        turn = self._turns.pop(answer.reply.id, None)
        if turn is not None:
            self._log(self._records.answered(turn, answer))
        if answer.status == "failed" and answer.reply.failure is not None:
            self._failed(answer, answer.reply.failure)
        elif whole and answer.turn:
            self._failures = 0
        self.house_keeping.answer_over(answer)

    def _failed(self, answer: Answer, failure: StageFailed) -> None:
        log.error("call %s turn %d: %s", self.id, answer.turn, failure, exc_info=failure.cause)
        self.emit(CallFailed(answer.turn, answer.revision, failure.stage, str(failure.cause)))
        self._failures += 1
        hopeless = failure.stage == "tts" or isinstance(failure.cause, ArithmeticError)
        if hopeless or self._failures >= _FAILURES or self._end_reason is not None:
            self.end("error")
        else:
            self.say(self.agent.apology)

    # ---- inside

    async def _send(self) -> None:
        try:
            await self.outbox.run()
        except PeerGone:
            self.end("peer_gone")

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:
            log.exception("call %s failed", self.id)
            failure = error if isinstance(error, StageFailed) else StageFailed("pipeline", error)
            turn, revision = self.listener.number, self.listener.revision
            self.emit(CallFailed(turn, revision, failure.stage, str(failure.cause)))
            self.end("error")

    def _sent(self, event: CallEvent) -> None:
        """The reply's own first sample counts as its audio, not a hold phrase before it."""
        answer = self.mouth.answer
        if isinstance(event, ReplyAudio) and answer is not None and answer.reply.id == event.reply_id:
            end = event.offset_ms / 1000 * event.rate + event.samples.size
            if end > answer.reply.track.filler_samples:
                answer.timeline.mark("audio_sent", self.now())

    def _log(self, record: TurnRecord) -> None:
        self._record(record)
        self.emit(TurnLogged(record.turn, record.revision, record.as_dict()))

    def _wind_up(self) -> None:
        """Stop everything; rows are written also for what the end cut off."""
        reason = self._end_reason or "error"
        self.mouth.stop("interrupted" if reason in ("hang_up", "peer_gone", "shutdown") else "failed")
        for turn in self.listener.close():
            self.abandoned(turn, reason)
        self.start(self._flush())

    async def _flush(self) -> None:
        others = self._tasks - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if self._end_reason != "peer_gone":
            with contextlib.suppress(PeerGone):
                await self.outbox.drain()
