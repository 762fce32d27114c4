"""Who has the floor when caller and agent speak at once: the agent pauses, and goes on or stops for good."""

from __future__ import annotations

from pipeline.agent import Interruptions
from pipeline.hearing.interruption import Verdict, judge
from pipeline.speaking.reply_player import ReplyPlayer
from pipeline.turns.turn import Turn


class Overlap:
    """Weighs what the caller says over the agent, by the agent's policy."""

    def __init__(self, player: ReplyPlayer, policy: Interruptions) -> None:
        self._player = player
        self._policy = policy

    def begins(self, turn: Turn) -> None:
        """Both speak. The agent pauses, unless nothing interrupts it."""
        turn.yield_floor()
        if self._policy.mode != "off":
            self._player.pause()

    def agent_begins(self, turn: Turn) -> None:
        """The agent begins to speak. A caller who has begun before it (the words of the turn before were
        known late) is to be heard first."""
        if turn.under_way is None and not turn.behind_cut and self._policy.mode != "off":
            self.begins(turn)

    def weigh(self, turn: Turn, text: str, *, final: bool, confidence: float = 1.0) -> Verdict:
        """Is this an interruption (see `pipeline.hearing.interruption.judge`)? One stops the agent."""
        verdict = judge(
            self._policy,
            text=text,
            final=final,
            agent_says=self._player.says,
            confidence=confidence,
            turn_is_over=self._player.answer is None,
        )
        if verdict == "stop":
            self.interrupt(turn)
        return verdict

    def asked_to_end(self, turn: Turn) -> bool:
        """The client says that the turn is over: then speech over the agent is no murmur. Whether it is one
        to answer."""
        if turn.over_agent and self._policy.mode != "off":
            self.interrupt(turn)
        return not turn.over_agent

    def interrupt(self, turn: Turn) -> None:
        """What the caller says over the agent is a turn. What nobody heard of the answer is its draft."""
        turn.take_floor()
        if (answer := self._player.stop()) is not None and not answer.heard.strip():
            turn.draft_from(answer.reply)
