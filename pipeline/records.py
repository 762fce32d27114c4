"""Turns a finished turn into its row of the latency log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

from pipeline.speaking.reply_player import Answer
from pipeline.telemetry.timeline import Timeline, TurnRecord
from pipeline.turns.turn import Revision, Turn

Fate = Literal["whole", "part", "none", "wasted"]


def draft_fate(
    turn: Turn, revision: Revision, drafted_before_commit: bool, accepted: int, offered: int
) -> Fate:
    """How the reply draft fared, judged when the reply is over.

    `whole`: everything drafted is part of the reply. `part`: a refuted revision's draft was kept up to its
    first difference. `wasted`: it was thrown away whole. `none`: nothing had been drafted when the turn was
    committed.
    """
    if offered:
        return "whole" if accepted == offered else "part" if accepted else "wasted"
    if turn.refuted is not None and turn.refuted.ids:
        return "wasted"
    return "whole" if drafted_before_commit else "none"


class Records:
    """Builds the records of one call."""

    def __init__(self, *, call_id: str, agent: str, origin: str, caller: str | None, now: float) -> None:
        self._call_id = call_id
        self._agent = agent
        self._origin = origin
        self._caller = caller
        self._wall = datetime.now(UTC)
        self._loop_start = now

    def answered(self, turn: Turn, answer: Answer) -> TurnRecord:
        """A committed turn whose answer is over."""
        record = self._base(turn, answer.timeline)
        record.caller_text = answer.caller_text
        record.reply_text = answer.reply.text
        record.heard_text = answer.heard
        record.status = answer.status
        record.interrupted = answer.status == "interrupted"
        record.audio_seconds = answer.reply.sound.seconds
        stats = answer.reply.stats
        thoughts = {name: stats.pop(name, 0) for name in ("thinking_tokens", "thinking_ms")}
        record.language = stats
        commit, first = answer.timeline.at("commit"), answer.timeline.at("llm_first_token")
        revision = turn.under_way
        if revision is not None:
            record.draft_fate = draft_fate(
                turn,
                revision,
                commit is not None and first is not None and first < commit,
                int(stats.get("reply_draft_accepted", 0)),
                int(stats.get("reply_draft_tokens", 0)),
            )
        record.extra = {
            "refutations": turn.refutations,
            "wasted_tokens": turn.refuted_tokens - int(stats.get("reply_draft_accepted", 0)),
            "draft_skipped": turn.draft_skipped,
            "longest_pause_ms": round(turn.longest_pause_ms),
            "false_interruptions": answer.false_interruptions,
            "echoes": answer.echoes,
            "cut_off": turn.cut_off,
            "hold_phrase": answer.reply.sound.filler_samples > 0,
            "made_again": answer.reply.made_again,
            **(thoughts if thoughts["thinking_tokens"] else {}),
        }
        return record

    def abandoned(self, turn: Turn, reason: str) -> TurnRecord:
        """A turn that the call's end cut off before it was committed."""
        record = self._base(turn, turn.timeline)
        record.caller_text = turn.told
        record.status = reason
        return record

    def _base(self, turn: Turn, timeline: Timeline) -> TurnRecord:
        began = timeline.at("speech_start") or timeline.at("commit") or self._loop_start
        return TurnRecord(
            call_id=self._call_id,
            turn=turn.number,
            revision=turn.revision,
            revisions=turn.refutations + 1,  # the revision's number also rises with noise that was dropped
            agent=self._agent,
            origin=self._origin,
            started_at=(self._wall + timedelta(seconds=began - self._loop_start)).isoformat(
                timespec="milliseconds"
            ),
            marks=timeline.relative_ms(),
            durations=timeline.durations_ms(),
            caller=self._caller,
        )
