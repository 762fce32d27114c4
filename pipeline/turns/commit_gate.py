"""From the caller's silence to the decision that the turn is over. The answer is drafted meanwhile, and only
the commit lets it out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from asr.recogniser import Transcript
from pipeline.agent import Patience
from pipeline.audio import CALLER_RATE
from pipeline.dialogue import Dialogue
from pipeline.hearing.interruption import words
from pipeline.hearing.microphone import Microphone
from pipeline.stages import StageFailed, Stages
from pipeline.tasks import CallTasks
from pipeline.turns.drafting import Drafting
from pipeline.turns.expected_answer import expected_answer
from pipeline.turns.policy import TurnPolicy, required_silence_ms
from pipeline.turns.turn import Revision, Turn

T = TypeVar("T")

_ANTICIPATION_MS = 64.0
"""Silence after which the answer is begun when there is room: two frames, which is when voice activity takes
it for one and no stop in a word."""

_MOST_RETRIES = 8
"""Refuted drafts of one turn after which none is made any more: this caller pauses for thought."""

_STALLED_SECONDS = 0.3
"""Added to the required silence when the peer has stopped sending audio after the caller went quiet."""


@dataclass(frozen=True, slots=True)
class FinalWords:
    """What the caller has said in this revision is known; it may be nothing."""

    turn: Turn
    revision: Revision
    transcript: Transcript


@dataclass(frozen=True, slots=True)
class TurnOver:
    """The caller has been quiet for long enough: the turn is to be committed."""

    turn: Turn
    revision: Revision


GateReport = FinalWords | TurnOver


class CommitGate:
    """Judges the revisions of the caller's turns. Whoever owns the turn says when it is quiet, and acts on
    the reports."""

    def __init__(
        self,
        *,
        stages: Stages,
        patience: Patience,
        microphone: Microphone,
        dialogue: Dialogue,
        drafting: Drafting,
        tasks: CallTasks,
        report: Callable[[GateReport], None],
    ) -> None:
        self._stages = stages
        self._policy = TurnPolicy.of(patience)
        self._microphone = microphone
        self._dialogue = dialogue
        self._drafting = drafting
        self._tasks = tasks
        self._report = report

    def quiet(self, turn: Turn, silence_ms: float) -> None:
        """The caller has been quiet for so long."""
        if turn.under_way is None and silence_ms >= self._begin_after_ms(turn):
            self._begin(turn)
        revision = turn.under_way
        if revision is None:
            return
        if not revision.soft_ended and silence_ms >= self._policy.soft_end_ms:
            self._soft_end(turn, revision)
        if revision.reply is None and turn.draft_skipped is not None:
            self.draft_if_room(turn, revision)
        self._consider(turn, revision, silence_ms)

    def may_anticipate(self, turn: Turn) -> bool:
        """Whether there is room for work on an answer before the soft end."""
        allowed = self._stages.speculate and self._stages.anticipate and not turn.over_agent
        return allowed and self._no_draft(turn) is None

    def draft_if_room(self, turn: Turn, revision: Revision) -> None:
        """Draft the reply to the revision's words, unless that would delay somebody."""
        turn.draft_skipped = self._no_draft(turn)
        if turn.draft_skipped is None:
            self._drafting.draft(turn, revision)

    async def recognise(self, turn: Turn, revision: Revision) -> Transcript:
        """The final transcript of this revision. Raises StageFailed."""
        assert turn.speech is not None
        return await self._run("asr", turn.speech.recognition.finish, revision.token)

    # ---- a revision's work

    def _begin_after_ms(self, turn: Turn) -> float:
        """When the answer is begun: at the soft end, or before it when drafts may be wasted."""
        soft_end = self._policy.soft_end_ms
        return min(_ANTICIPATION_MS, soft_end) if self.may_anticipate(turn) else soft_end

    def _begin(self, turn: Turn) -> None:
        """The caller went quiet: the detector is asked; with drafting the final recognition starts beside it,
        and then the reply, which finds both cores free. Speech over the agent is always recognised now: the
        agent waits to know what it was."""
        revision = turn.begin_revision()
        self._drafting.stop_prefill()
        turn.mark_speech(self._microphone.time_of)
        revision.detection = self._tasks.start(self._detect(turn, revision))
        if self._stages.speculate or turn.over_agent:
            revision.recognition = self._tasks.start(self._final(turn, revision))

    def _soft_end(self, turn: Turn, revision: Revision) -> None:
        """Quiet for long enough to judge whether the turn is over."""
        revision.soft_ended = True
        turn.timeline.mark("soft_end", self._now())
        self._tasks.start(self._judge(turn, revision))

    async def _final(self, turn: Turn, revision: Revision) -> None:
        """The final transcript of this revision, reported."""
        transcript = await self.recognise(turn, revision)
        if not turn.alive(revision):
            return
        if not words(transcript.text) and not revision.soft_ended:
            return  # too early to tell: recognition is repeated at the soft end
        revision.transcript = transcript
        turn.timeline.mark("asr_final", self._now())
        self._report(FinalWords(turn, revision, transcript))

    async def _detect(self, turn: Turn, revision: Revision) -> None:
        """How much the turn sounds finished."""
        audio = self._microphone.since(turn.start)
        revision.probability = await self._run("end_of_turn", self._stages.end_of_turn.probability, audio)

    async def _judge(self, turn: Turn, revision: Revision) -> None:
        """The detector's answer and the final words together say how long to wait."""
        assert revision.detection is not None
        await asyncio.wait({revision.detection})
        if revision.recognition is not None:
            await asyncio.wait({revision.recognition})
            if revision.transcript is None and turn.alive(revision):
                await self._final(turn, revision)
        if not turn.alive(revision):
            return
        heard = revision.transcript
        required_ms = required_silence_ms(
            self._policy,
            probability=revision.probability,
            transcript=heard.text if heard is not None else "",
            closing=heard.closing if heard is not None else None,
            expecting=expected_answer(self._dialogue.last_agent_words),
            longest_pause_ms=turn.longest_pause_ms,
        )
        turn.judge(required_ms)
        self._consider(turn, revision, self._silence_ms(turn))
        await self._commit_without_audio(turn, revision, required_ms)

    async def _run(self, pool: str, function: Callable[..., T], *arguments: Any) -> T:
        try:
            return await self._stages.workers.run(pool, function, *arguments)
        except Exception as error:
            raise StageFailed("asr", error) from error

    def _no_draft(self, turn: Turn) -> str | None:
        """Why nothing is drafted now: see `Service.no_draft_because`, or `retries`."""
        return "retries" if turn.refutations >= _MOST_RETRIES else self._stages.no_draft_because()

    # ---- the decision

    def _silence_ms(self, turn: Turn) -> float:
        assert turn.quiet_since is not None
        return (self._microphone.end - turn.quiet_since) / CALLER_RATE * 1000

    def _consider(self, turn: Turn, revision: Revision, silence_ms: float) -> None:
        """Over when the caller has been quiet for long enough and, with drafting, the words are known."""
        if turn.over_agent or not turn.alive(revision):
            return
        known = revision.transcript is not None or not self._stages.speculate
        required = self._policy.max_silence_ms if revision.required_ms is None else revision.required_ms
        if known and silence_ms >= required:
            self._report(TurnOver(turn, revision))

    async def _commit_without_audio(self, turn: Turn, revision: Revision, required_ms: float) -> None:
        """A peer that stops sending when the caller is quiet gives no frames: then the clock decides."""
        if turn.quiet_since is None or not turn.alive(revision):
            return
        due = self._microphone.time_of(turn.quiet_since) + required_ms / 1000 + _STALLED_SECONDS
        await asyncio.sleep(max(0.0, due - self._now()))
        if not self._microphone.waiting and turn.alive(revision):
            self._consider(turn, revision, required_ms)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
