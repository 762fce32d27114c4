"""Where the caller's speech begins and ends, from voice activity's frames: through echo, noise and lost
audio."""

from __future__ import annotations

from dataclasses import dataclass

from asr.vad import EXIT, VoiceFrame
from pipeline.audio import CALLER_RATE
from pipeline.hearing.echo import WINDOW_SECONDS, EchoGuard

_IGNORED_SECONDS = 2.0
"""Noise that does not stop is listened to again after so long, from where it was given up: the caller may be
speaking through it."""


@dataclass(frozen=True, slots=True)
class Edges:
    """Positions at which speech began and ended, as one frame tells."""

    began: int | None = None
    ended: int | None = None


class SpeechEdges:
    """Follows one call's frames. Positions are samples of the caller's 16 kHz audio."""

    def __init__(self, echo: EchoGuard) -> None:
        self._echo = echo
        self._ignored_since: int | None = None
        self._lost_at: int | None = None

    def lost(self, at: int) -> None:
        """The audio stopped at this position in the middle of speech. Voice activity has not noticed."""
        self._lost_at = at

    def ignore(self, since: int) -> None:
        """What sounds since this position is noise: it begins nothing until it stops."""
        self._ignored_since = since

    def follow(self, frame: VoiceFrame, *, agent_speaks: bool) -> Edges:
        """What the frame says. Noise that goes on is judged again when the agent is quiet."""
        began = frame.onset if frame.onset is not None else self._back(frame)
        if frame.onset is not None or frame.offset is not None:
            self._lost_at = None
        if self._ignored_since is not None:
            began = None
        if frame.offset is not None:
            self._ignored_since = None
            self._echo.over()
        elif began is None:
            began = self._judged_again(frame.end, agent_speaks)
        return Edges(began, frame.offset)

    def _back(self, frame: VoiceFrame) -> int | None:
        """The audio is back: the first frame that is speech says that it goes on."""
        if self._lost_at is None or frame.offset is not None or frame.probability < EXIT:
            return None
        onset, self._lost_at = self._lost_at, None
        return onset

    def _judged_again(self, here: int, agent_speaks: bool) -> int | None:
        """Where an echo or a noise that lasts may have become speech."""
        if self._echo.due(here):
            return None if self._ignored_since is not None else here - round(WINDOW_SECONDS * CALLER_RATE)
        if self._ignored_since is None or agent_speaks:
            return None
        if here - self._ignored_since < _IGNORED_SECONDS * CALLER_RATE:
            return None
        onset, self._ignored_since = self._ignored_since, None
        return onset
