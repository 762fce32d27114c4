"""What is due to a caller who says nothing. Pure, on the call's clock."""

from __future__ import annotations

from typing import Literal

from pipeline.agent import Silence


class IdleCaller:
    """Noises and coughs are no words: a caller who says none for long is asked, and then left."""

    def __init__(self, silence: Silence, now: float) -> None:
        self._silence = silence
        self._asked = 0
        self._last_word = now

    def caller_spoke(self, now: float) -> None:
        """A turn was committed."""
        self._asked = 0
        self._last_word = now

    def talk_goes_on(self, now: float) -> None:
        """The agent speaks, or the caller has said words."""
        self._last_word = now

    def due(self, now: float) -> Literal["", "ask", "leave"]:
        """What the agent is to do now: ask whether somebody is there, or take leave."""
        if now - self._last_word < self._silence.after_seconds:
            return ""
        self._last_word = now
        if self._asked >= self._silence.times:
            return "leave"
        self._asked += 1
        return "ask"
