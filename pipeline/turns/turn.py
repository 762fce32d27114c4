"""The caller's running turn: its audio, its recognition, and the attempts (revisions) to answer it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from asr.recogniser import Transcript
from pipeline.events import Audio, CallEvent, StageProgress
from pipeline.hearing.audio_clock import RATE
from pipeline.speaking.reply import Reply, Spoken
from pipeline.stages import Listening
from pipeline.telemetry.timeline import Timeline
from pipeline.workers import CancelToken

_LEAST_STEP_SECONDS = 0.1
"""New audio that a recognition pass needs at least, however quiet the caller falls."""

PREROLL_SECONDS = 0.3
"""Audio before the detected onset that belongs to the turn: voice activity is confirmed late."""


@dataclass(slots=True)
class Attempt:
    """One revision's try at the answer: the final transcript, the end-of-turn judgement, the drafted
    reply."""

    revision: int
    token: CancelToken = field(default_factory=CancelToken)
    soft_ended: bool = False
    detection: asyncio.Task[None] | None = None
    probability: float | None = None
    recognition: asyncio.Task[None] | None = None
    transcript: Transcript | None = None
    required_ms: float | None = None
    reply: Reply | None = None

    def refute(self) -> None:
        """The caller went on: stop all work on it."""
        self.token.cancel()
        if self.reply is not None:
            self.reply.cancel()


class Turn:
    """What the caller is saying. Positions are samples of the call's 16 kHz audio.

    `start` is where its audio begins (with pre-roll), `onset` where speech does. A typed turn has no
    `utterance`. The peer is told of the timeline's marks as they are set, once there is an end of speech to
    relate them to.
    """

    def __init__(
        self,
        number: int,
        revision: int,
        start: int,
        onset: int,
        utterance: Listening | None,
        emit: Callable[[CallEvent], None],
    ) -> None:
        self.number = number
        self.revision = revision
        self.start = start
        self.onset = onset
        self.utterance = utterance
        self.timeline = Timeline(self._tell_mark)
        self._emit = emit
        self.over_agent = False
        self.committed = False
        self.cut_off = False
        self.behind_cut = False  # it began where the one before was cut off, without a pause
        self.draft_skipped: str | None = None
        self.quiet_since: int | None = None
        self.longest_pause_ms = 0.0
        self.attempt: Attempt | None = None
        self.refuted: Reply | None = None
        self.refutations = 0
        self.refuted_tokens = 0
        self.reusable: dict[str, Spoken] = {}
        self.announced = False  # the peer knows that the caller speaks
        self.told = ""
        self.step_token = CancelToken()
        self.fed = 0
        self.stepped = 0
        self.falling_quiet = False
        self._changed = asyncio.Event()

    @property
    def seconds(self) -> float:
        return self.fed / RATE

    def feed(self, audio: Audio) -> None:
        assert self.utterance is not None
        self.utterance.feed(audio)
        self.fed += audio.size
        self._changed.set()

    async def step_is_due(self, seconds: float) -> None:
        """Wait until so much new audio has come since the last step that one pays, and the caller is not
        quiet."""
        while not self._step_is_due(seconds):
            self._changed.clear()
            await self._changed.wait()
        self.stepped = self.fed

    def sounds(self, quiet: bool) -> None:
        """The last frame was or was not quiet; one more quiet one will confirm it.

        A step that begins now hears all that was said, and the final recognition finds it done.
        """
        self.falling_quiet = quiet
        if quiet:
            self._changed.set()

    def _step_is_due(self, seconds: float) -> bool:
        new = (self.fed - self.stepped) / RATE
        if self.attempt is not None or new < _LEAST_STEP_SECONDS:
            return False
        if self.falling_quiet:
            return True
        return new >= seconds and (self.over_agent or (self.utterance is not None and self.utterance.due))

    def begin_attempt(self) -> Attempt:
        """The caller went quiet: no more steps; the attempt of this revision begins.

        A running step goes on if it hears the speech to its end.
        """
        if self.quiet_since is None or self.start + self.stepped < self.quiet_since:
            self.step_token.cancel()
        self.attempt = Attempt(self.revision)
        return self.attempt

    def go_on(self, pause_ms: float) -> None:
        """The caller speaks again before commit: a new revision; the old attempt becomes its draft."""
        self.longest_pause_ms = max(self.longest_pause_ms, pause_ms)
        self.quiet_since = None
        if self.attempt is None:
            return
        attempt, self.attempt = self.attempt, None
        attempt.refute()
        self.draft_skipped = None
        self.revision += 1
        self.refutations += 1
        if attempt.reply is not None:
            self.draft_from(attempt.reply)
        self.timeline.refute()
        self.step_token = CancelToken()
        self._changed.set()

    def draft_from(self, reply: Reply) -> None:
        """A reply that nobody heard: its tokens are the next reply's draft, its sentences' audio may be used
        again."""
        self.refuted = reply
        self.reusable = {**self.reusable, **reply.spoken}

    def close(self) -> None:
        """Stop all recognition of this turn."""
        self.step_token.cancel()
        if self.attempt is not None and not self.committed:
            self.attempt.refute()

    def _tell_mark(self, mark: str, at: float) -> None:
        origin = self.timeline.origin
        if origin is not None:
            self._emit(StageProgress(self.number, self.revision, mark, round((at - origin) * 1000, 1)))
