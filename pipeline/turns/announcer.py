"""What the peer is told of the caller's turns, each thing once. Positions are samples at 16 kHz."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.audio import CALLER_RATE
from pipeline.events import (
    CallEvent,
    SpeechDismissed,
    SpeechStarted,
    SpeechStopped,
    TranscriptDelta,
    TranscriptDone,
)
from pipeline.turns.turn import Turn


class TurnAnnouncer:
    """Keeps on the turn what the peer knows of it."""

    def __init__(self, emit: Callable[[CallEvent], None]) -> None:
        self._emit = emit

    def started(self, turn: Turn) -> None:
        """The caller speaks, and it is a turn."""
        if not turn.announced:
            turn.announced = True
            self._emit(SpeechStarted(turn.number, turn.revision, _ms(turn.onset)))

    def words(self, turn: Turn, text: str) -> None:
        """The words so far that will not change; told are those that the peer does not have yet."""
        if text.startswith(turn.told) and len(text) > len(turn.told):
            self._emit(TranscriptDelta(turn.number, turn.revision, text[len(turn.told) :]))
            turn.told = text

    def dismissed(self, turn: Turn, here: int) -> None:
        """What was told to have started was no turn."""
        if turn.announced:
            self._emit(SpeechDismissed(turn.number, turn.revision, _ms(here)))

    def stopped(self, turn: Turn, here: int) -> None:
        """The turn is committed. `here` counts where the caller did not speak."""
        end = here if turn.quiet_since is None else turn.quiet_since
        self._emit(SpeechStopped(turn.number, turn.revision, _ms(end)))

    def transcript(self, turn: Turn, text: str) -> None:
        """All that was said."""
        self._emit(TranscriptDone(turn.number, turn.revision, text))


def _ms(position: int) -> int:
    return position * 1000 // CALLER_RATE
