"""The caller's running turn: its state, its revisions, and what its drafts leave for the next revision."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from asr.recogniser import Transcript
from pipeline.events import CallEvent, StageProgress
from pipeline.speaking.reply import Reply, SentenceAudio
from pipeline.telemetry.timeline import Timeline
from pipeline.turns.caller_speech import CallerSpeech
from pipeline.workers import CancelToken


class TurnState(Enum):
    """Where a turn stands. The caller is audible in the first two."""

    SPEAKING = "speaking"
    OVER_AGENT = "over_agent"
    """Speaking while the agent has the floor; whether that interrupts it is not decided."""
    OVER_AGENT_QUIET = "over_agent_quiet"
    """The same, and the caller is quiet again."""
    QUIET = "quiet"
    JUDGED = "judged"
    """Quiet, and it is known how much silence ends the turn."""
    COMMITTED = "committed"
    DISMISSED = "dismissed"
    """It was no turn: noise, a listening noise, words that a typed message replaced; or the call
    has ended."""


_S = TurnState
_TRANSITIONS: dict[str, dict[TurnState, TurnState]] = {
    "fall_quiet": {_S.SPEAKING: _S.QUIET, _S.OVER_AGENT: _S.OVER_AGENT_QUIET},
    "go_on": {_S.QUIET: _S.SPEAKING, _S.JUDGED: _S.SPEAKING, _S.OVER_AGENT_QUIET: _S.OVER_AGENT},
    "yield_floor": {_S.SPEAKING: _S.OVER_AGENT, _S.QUIET: _S.OVER_AGENT_QUIET},
    "take_floor": {_S.OVER_AGENT: _S.SPEAKING, _S.OVER_AGENT_QUIET: _S.QUIET},
    "judge": {_S.QUIET: _S.JUDGED},
    "commit": {_S.QUIET: _S.COMMITTED, _S.JUDGED: _S.COMMITTED},
    "dismiss": dict.fromkeys(
        (_S.SPEAKING, _S.OVER_AGENT, _S.OVER_AGENT_QUIET, _S.QUIET, _S.JUDGED), _S.DISMISSED
    ),
}
"""Every way from state to state. What is not here is a mistake of the program."""


class IllegalTransition(RuntimeError):
    """A turn was asked for a transition that its state does not have."""


@dataclass(slots=True)
class Revision:
    """One revision's work on the answer: the end-of-turn judgement, the final transcript, the drafted
    reply."""

    number: int
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
    `speech` and begins in silence. The peer is told of the timeline's marks as they are set, once there is an
    end of speech to relate them to.
    """

    def __init__(
        self,
        number: int,
        revision: int,
        start: int,
        onset: int,
        speech: CallerSpeech | None,
        emit: Callable[[CallEvent], None],
    ) -> None:
        self.number = number
        self.revision = revision
        self.start = start
        self.onset = onset
        self.speech = speech
        self.timeline = Timeline(self._tell_mark)
        self.quiet_since: int | None = None
        self.longest_pause_ms = 0.0
        self.under_way: Revision | None = None
        self.cut_off = False
        self.behind_cut = False  # it began where the one before was cut off, without a pause
        self.announced = False  # the peer knows that the caller speaks
        self.told = ""  # the words that the peer knows
        self.refuted: Reply | None = None
        self.refutations = 0
        self.refuted_tokens = 0
        self.reusable: dict[str, SentenceAudio] = {}
        self.draft_skipped: str | None = None
        self._state = TurnState.QUIET if speech is None else TurnState.SPEAKING
        self._emit = emit

    # ---- the state

    @property
    def state(self) -> TurnState:
        return self._state

    @property
    def open(self) -> bool:
        """Whether it is still the caller's running turn."""
        return self._state not in (TurnState.COMMITTED, TurnState.DISMISSED)

    @property
    def over_agent(self) -> bool:
        return self._state in (TurnState.OVER_AGENT, TurnState.OVER_AGENT_QUIET)

    @property
    def seconds(self) -> float:
        """Of its audio so far."""
        return 0.0 if self.speech is None else self.speech.seconds

    @property
    def quiet(self) -> bool:
        return self._state in (TurnState.QUIET, TurnState.JUDGED, TurnState.OVER_AGENT_QUIET)

    def _move(self, transition: str) -> None:
        """Raises IllegalTransition."""
        try:
            self._state = _TRANSITIONS[transition][self._state]
        except KeyError:
            raise IllegalTransition(f"turn {self.number}: {transition} while {self._state.value}") from None

    def fall_quiet(self, at: int) -> None:
        """The caller was audible up to position `at`."""
        self._move("fall_quiet")
        self.quiet_since = at

    def correct_end(self, at: int) -> None:
        """The caller, who is quiet, was audible up to another position than was thought."""
        if not self.quiet:
            raise IllegalTransition(f"turn {self.number}: correct_end while {self._state.value}")
        self.quiet_since = at

    def go_on(self, pause_ms: float) -> None:
        """The caller speaks again before commit. If an answer was under way, a new revision begins, and the
        old one's reply is its draft."""
        self._move("go_on")
        self.longest_pause_ms = max(self.longest_pause_ms, pause_ms)
        self.quiet_since = None
        if self.under_way is None:
            return
        refuted, self.under_way = self.under_way, None
        refuted.refute()
        self.draft_skipped = None
        self.revision += 1
        self.refutations += 1
        if refuted.reply is not None:
            self.draft_from(refuted.reply)
        self.timeline.refute()
        if self.speech is not None:
            self.speech.resume_passes()

    def yield_floor(self) -> None:
        """The agent speaks as well: whether the caller interrupts it is to be decided."""
        if not self.over_agent:
            self._move("yield_floor")
            self._passes_are_urgent(True)

    def take_floor(self) -> None:
        """The caller interrupts the agent, or the agent is over."""
        self._move("take_floor")
        self._passes_are_urgent(False)

    def judge(self, required_ms: float) -> None:
        """The silence that ends the turn is known."""
        self._move("judge")
        assert self.under_way is not None
        self.under_way.required_ms = required_ms

    def commit(self) -> None:
        """It is over."""
        self._move("commit")

    def dismiss(self) -> None:
        """It was no turn: stop all work on it."""
        self._move("dismiss")
        if self.speech is not None:
            self.speech.stop_passes()
        if self.under_way is not None:
            self.under_way.refute()

    def _passes_are_urgent(self, urgent: bool) -> None:
        if self.speech is not None:
            self.speech.urgent = urgent

    # ---- revisions and drafts

    def begin_revision(self) -> Revision:
        """The caller went quiet: work on this revision's answer begins, and partial recognition rests."""
        if self.speech is not None:
            heard_all = self.quiet_since is not None and self.start + self.speech.passed >= self.quiet_since
            self.speech.rest_passes(finish_running=heard_all)
        self.under_way = Revision(self.revision)
        return self.under_way

    def alive(self, revision: Revision) -> bool:
        """Whether this revision may still become the answer."""
        return self.open and not revision.token()

    def draft_from(self, reply: Reply) -> None:
        """A reply that nobody heard: its tokens are the next reply's draft, its sentences' audio may be used
        again."""
        self.refuted = reply
        self.reusable = {**self.reusable, **reply.spoken}

    # ---- the timeline

    def mark_speech(self, time_of: Callable[[int], float]) -> None:
        """Mark both ends of what was said, by one clock: it may have been set right since the beginning.

        `time_of` gives the loop time of a position.
        """
        assert self.quiet_since is not None
        if self.timeline.mark("speech_end", time_of(self.quiet_since)):
            self.timeline.move("speech_start", time_of(self.onset))

    def _tell_mark(self, mark: str, at: float) -> None:
        origin = self.timeline.origin
        if origin is not None:
            self._emit(StageProgress(self.number, self.revision, mark, round((at - origin) * 1000, 1)))
