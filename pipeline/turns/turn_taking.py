"""The caller's side of a call: where turns begin, go on and end.

Frames of voice activity drive the running turn. What comes of a turn is told to the call in reports.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

from asr.recogniser import Partial, Transcript
from asr.vad import EXIT, VoiceFrame
from pipeline.agent import Agent
from pipeline.audio import CALLER_RATE, Audio
from pipeline.dialogue import Dialogue
from pipeline.events import (
    CallEvent,
)
from pipeline.hearing.echo import EchoGuard
from pipeline.hearing.interruption import AGREEMENTS, Verdict, words
from pipeline.hearing.microphone import Microphone
from pipeline.hearing.requests import RequestsBehindAudio
from pipeline.hearing.speech_edges import SpeechEdges
from pipeline.speaking.reply_player import ReplyPlayer
from pipeline.stages import StageFailed, Stages
from pipeline.tasks import CallTasks
from pipeline.turns.announcer import TurnAnnouncer
from pipeline.turns.caller_speech import CallerSpeech
from pipeline.turns.commit_gate import CommitGate, FinalWords, GateReport
from pipeline.turns.drafting import Drafting
from pipeline.turns.overlap import Overlap
from pipeline.turns.turn import Revision, Turn

log = logging.getLogger("rejoinder.call")

_PREROLL_SECONDS = 0.3
"""Audio before the detected onset that belongs to the turn: voice activity is confirmed late."""

_PASS_SECONDS = 0.6
_PASS_SECONDS_OVER_AGENT = 0.3
"""New audio between recognition passes; shorter while the agent waits to know whether it is interrupted."""

_NOISE_SECONDS = 6.0
_NOISE_SECONDS_OVER_AGENT = 3.0
"""Speech without a word in it for that long is noise. A caller who may be about to say something gets more
time when the agent is quiet."""

_LOST_SECONDS = 1.0
"""Without any audio in the middle of speech for that long, the caller counts as quiet: a client's key was let
go, a line is dead."""


@dataclass(frozen=True, slots=True)
class TurnCommitted:
    """The turn is over and has words: answer it. Its revision may have a draft."""

    turn: Turn
    revision: Revision
    text: str


@dataclass(frozen=True, slots=True)
class TurnAbandoned:
    """The peer has seen words of a turn that will not be answered. `reason`: replaced."""

    turn: Turn
    reason: str


TurnReport = TurnCommitted | TurnAbandoned


class TurnTaking:
    """Owns the running turn. All methods run on the loop; models run on the stages' workers."""

    def __init__(
        self,
        *,
        call_id: str,
        stages: Stages,
        agent: Agent,
        microphone: Microphone,
        requests: RequestsBehindAudio,
        player: ReplyPlayer,
        dialogue: Dialogue,
        drafting: Drafting,
        tasks: CallTasks,
        emit: Callable[[CallEvent], None],
        report: Callable[[TurnReport], None],
    ) -> None:
        self.number = 1
        self.revision = 1
        self.turn: Turn | None = None
        self._call_id = call_id
        self._stages = stages
        self._hotwords = agent.hotwords
        self._longest_seconds = agent.patience.max_turn_seconds
        self._microphone = microphone
        self._requests = requests
        self._player = player
        self._drafting = drafting
        self._tasks = tasks
        self._emit = emit
        self._announcer = TurnAnnouncer(emit)
        self._report = report
        self._echo = EchoGuard(microphone, player.played_around)
        self._edges = SpeechEdges(self._echo)
        self._overlap = Overlap(player, agent.interruptions)
        self._gate = CommitGate(
            stages=stages,
            patience=agent.patience,
            microphone=microphone,
            dialogue=dialogue,
            drafting=drafting,
            tasks=tasks,
            report=self._gate_reports,
        )
        self._cut_at: int | None = None  # a turn was cut off here, in the middle of speech
        self.unrecognised: Turn | None = None  # committed before its words were known
        self._typed_behind: list[str] = []  # meanwhile: what was said comes first
        self._passes: asyncio.Task[None] | None = None

    # ---- audio

    async def listen(self) -> None:
        """Voice activity over what comes in, until cancelled. Raises StageFailed."""
        activity = self._stages.vad.open()
        while True:
            audio = await self._next_audio()
            try:
                frames = await self._stages.workers.run("vad", activity.push, audio)
            except Exception as error:
                raise StageFailed("asr", error) from error
            self._microphone.listened_to(audio)
            if self.turn is not None and self.turn.speech is not None:
                self.turn.speech.feed(audio)
            for frame in frames:
                self._frame(frame)
            self._requests.caught_up()

    async def _next_audio(self) -> Audio:
        if self.turn is not None and not self.turn.quiet:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOST_SECONDS):
                    return await self._microphone.next()
            self._audio_is_lost()
        return await self._microphone.next()

    def _audio_is_lost(self) -> None:
        turn, here = self.turn, self._microphone.end
        if turn is not None and not turn.quiet:
            self._edges.lost(here)
            self._fell_quiet(turn, here)
            self._gate.quiet(turn, _LOST_SECONDS * 1000)

    def _frame(self, frame: VoiceFrame) -> None:
        edges = self._edges.follow(frame, agent_speaks=self._player.answer is not None)
        if edges.began is not None:
            self._speech_began(edges.began)
        if edges.ended is not None:
            self._cut_at = None
            if self.turn is not None:
                self._fell_quiet(self.turn, edges.ended)
        elif self._cut_at is not None and frame.end > self._cut_at:
            self._go_on_behind_the_cut(self._cut_at)
        turn = self.turn
        if turn is None or turn.speech is None:
            return
        falling_quiet = frame.speaking and frame.probability < EXIT
        turn.speech.sounds(quiet=falling_quiet and self._gate.may_anticipate(turn))
        if not frame.speaking and turn.quiet_since is not None:
            self._gate.quiet(turn, (frame.end - turn.quiet_since) / CALLER_RATE * 1000)
        elif not turn.over_agent and turn.seconds > self._longest_seconds:
            log.warning("call %s turn %d: the caller did not stop", self._call_id, turn.number)
            turn.cut_off = True
            self._commit_now(turn)
            self._cut_at = self._microphone.end

    # ---- speech begins, goes on and falls quiet

    def _speech_began(self, onset: int) -> None:
        self._cut_at = None
        turn = self.turn
        if turn is not None:
            if turn.quiet_since is not None:
                turn.go_on((onset - turn.quiet_since) / CALLER_RATE * 1000)
                self.revision = turn.revision
            return
        if self._is_echo():
            return
        turn = self._new_turn(onset)
        if self._player.answer is None:
            self._announcer.started(turn)
        else:
            self._overlap.begins(turn)
            self._weigh(turn, "", final=False)

    def _is_echo(self) -> bool:
        """Whether it is the agent's own voice, from a loudspeaker; counted once for as long as it sounds."""
        again, answer = self._echo.sounding, self._player.answer
        echo = self._echo.is_echo()
        if echo and not again and answer is not None:
            answer.echoes += 1
        return echo

    def _new_turn(self, onset: int, preroll_seconds: float = _PREROLL_SECONDS) -> Turn:
        start = max(0, onset - round(preroll_seconds * CALLER_RATE))
        alone = () if self._player.answer is None else AGREEMENTS
        recognition = self._stages.recogniser.open(hotwords=self._hotwords, alone=alone)
        speech = CallerSpeech(recognition)
        turn = Turn(self.number, self.revision, start, onset, speech, self._emit)
        turn.timeline.mark("speech_start", self._microphone.time_of(onset))
        speech.feed(self._microphone.since(start))
        self.turn = turn
        self._passes = self._tasks.start(self._recognise(turn, speech))
        return turn

    def _fell_quiet(self, turn: Turn, at: int) -> None:
        """What went on behind a cut while the agent had begun to answer is speech over it, now that it ends:
        until then the agent says what it was cut for."""
        if turn.quiet:
            turn.correct_end(at)
            return
        turn.fall_quiet(at)
        if turn.behind_cut and self._player.answer is not None:
            turn.yield_floor()

    def _go_on_behind_the_cut(self, cut: int) -> None:
        """The caller did not stop where the turn was cut off: the next one begins there."""
        turn = self._new_turn(cut, preroll_seconds=0.0)
        turn.behind_cut = True
        self._cut_at = None
        self._announcer.started(turn)

    # ---- words while the caller speaks

    async def _recognise(self, turn: Turn, speech: CallerSpeech) -> None:
        """Partial hypotheses. Raises StageFailed."""
        while turn.open:
            await speech.pass_is_due(_PASS_SECONDS_OVER_AGENT if turn.over_agent else _PASS_SECONDS)
            try:
                partial = await self._stages.workers.run("asr", speech.recognition.step, speech.pass_token)
            except Exception as error:
                raise StageFailed("asr", error) from error
            if turn.open and not speech.pass_token():
                self._heard_so_far(turn, speech, partial)

    def _heard_so_far(self, turn: Turn, speech: CallerSpeech, partial: Partial) -> None:
        """Committed words go to the peer, never to be taken back."""
        committed = "".join(word.text for word in partial.settled)
        hypothesis = committed + partial.tentative
        if turn.over_agent:
            self._weigh(turn, hypothesis, final=False)
        if not turn.over_agent and turn.open:
            self._announcer.words(turn, committed)
            if turn.seconds > _NOISE_SECONDS and not words(hypothesis):
                self._dismiss_noise(turn)
            elif self._stages.speculate and turn.under_way is None and not speech.falling_quiet:
                self._tasks.start(self._drafting.prefill(hypothesis))

    def _weigh(self, turn: Turn, text: str, *, final: bool, confidence: float = 1.0) -> Verdict:
        """Decide what speech over the agent is, and let it be that."""
        verdict = self._overlap.weigh(turn, text, final=final, confidence=confidence)
        if verdict == "stop":
            self._announcer.started(turn)
        elif verdict == "resume":
            self._dismiss(turn)
        elif not words(text) and turn.seconds > _NOISE_SECONDS_OVER_AGENT:
            self._dismiss_noise(turn)
        return verdict

    def _dismiss_noise(self, turn: Turn) -> None:
        log.info("call %s turn %d: %.1f s of noise", self._call_id, turn.number, turn.seconds)
        if not turn.quiet:
            self._edges.ignore(self._microphone.end)
        self._dismiss(turn)

    def _dismiss(self, turn: Turn) -> None:
        """It was no turn: noise, or a listening noise. The agent goes on where it stopped."""
        turn.dismiss()
        self._end_of(turn)
        self.revision = turn.revision + 1
        self._announcer.dismissed(turn, self._microphone.end)
        self._player.resume()

    # ---- what the rest of the call does

    def agent_begins(self) -> None:
        """The agent begins to speak."""
        if self.turn is not None:
            self._overlap.agent_begins(self.turn)

    def memory_amended(self) -> None:
        """What the running turn's draft was made from has changed: it is the draft of another one now."""
        turn = self.turn
        if turn is not None and turn.under_way is not None and turn.under_way.reply is not None:
            outdated = turn.under_way.reply
            outdated.cancel()
            turn.draft_from(outdated)
            turn.timeline.redraft()
            self._drafting.draft(turn, turn.under_way)

    def commit_asked(self) -> int | None:
        """The client says that the turn is over, whatever the silence. Gives the turn's number, None where
        nothing was said."""
        turn = self.turn
        if turn is None or not self._overlap.asked_to_end(turn):
            return None
        self._announcer.started(turn)
        self._commit_now(turn)
        return turn.number

    def _commit_now(self, turn: Turn) -> None:
        """The turn is over, whatever the silence."""
        if not turn.quiet:
            turn.fall_quiet(self._microphone.end)
        turn.mark_speech(self._microphone.time_of)
        self._commit(turn, turn.under_way or turn.begin_revision())

    def typed(self, text: str) -> None:
        """A turn without speech, behind the words of one that was committed before. What the caller is saying
        meanwhile is dropped; so is what the agent says."""
        if self.unrecognised is not None:
            self._typed_behind.append(text)
            return
        if (turn := self.turn) is not None:
            self._dismiss(turn)
            if turn.told:  # its number is used up
                self._report(TurnAbandoned(turn, "replaced"))
                self._count_on(turn)
        self._player.stop()
        here = self._microphone.end
        turn = Turn(self.number, self.revision, here, here, None, self._emit)
        revision = turn.begin_revision()
        revision.transcript = Transcript(text, (), 0.0)
        self._commit(turn, revision)

    def close(self) -> list[Turn]:
        """The call ends. Returns the turns that it cut off: one whose words were not known yet, and the one
        that the caller was in the middle of."""
        turn, self.turn = self.turn, None
        self._drafting.stop_prefill()
        cut_off = [cut for cut in (self.unrecognised, turn) if cut is not None and not cut.over_agent]
        if turn is not None:
            turn.dismiss()
        return cut_off

    # ---- turns end

    def _gate_reports(self, report: GateReport) -> None:
        turn, revision = report.turn, report.revision
        if isinstance(report, FinalWords):
            self._final_words(turn, revision, report.transcript)
        else:
            self._commit(turn, revision)

    def _final_words(self, turn: Turn, revision: Revision, transcript: Transcript) -> None:
        if turn.over_agent:
            sure = [word.probability for word in transcript.words]
            confidence = fmean(sure) if sure else 0.0
            if self._weigh(turn, transcript.text, final=True, confidence=confidence) != "stop":
                return
        if not words(transcript.text):
            self._dismiss(turn)
        elif self._stages.speculate:
            self._gate.draft_if_room(turn, revision)

    def _commit(self, turn: Turn, revision: Revision) -> None:
        """The turn is over: the gate opens. What was drafted may be heard."""
        turn.commit()
        turn.timeline.mark("commit", asyncio.get_running_loop().time())
        self._end_of(turn)
        self._count_on(turn)
        self._announcer.stopped(turn, self._microphone.end)
        if revision.transcript is None:
            self.unrecognised = turn
            self._tasks.start(self._answer_late(turn, revision))
        else:
            self._answer(turn, revision, revision.transcript)

    async def _answer_late(self, turn: Turn, revision: Revision) -> None:
        """Without drafting the final recognition starts only now."""
        transcript = await self._gate.recognise(turn, revision)
        if self.unrecognised is turn:
            self.unrecognised = None
        turn.timeline.mark("asr_final", asyncio.get_running_loop().time())
        revision.transcript = transcript
        if words(transcript.text):
            self._answer(turn, revision, transcript)
        else:
            self._announcer.transcript(turn, "")
        while self._typed_behind and self.unrecognised is None:
            self.typed(self._typed_behind.pop(0))

    def _answer(self, turn: Turn, revision: Revision, transcript: Transcript) -> None:
        text = transcript.text.strip()
        self._announcer.words(turn, "".join(word.text for word in transcript.words) or text)
        self._announcer.transcript(turn, text)
        self._report(TurnCommitted(turn, revision, text))

    def _end_of(self, turn: Turn) -> None:
        if self.turn is turn:
            self.turn = None
        if self._passes is not None:
            self._passes.cancel()

    def _count_on(self, turn: Turn) -> None:
        """What comes is the next turn."""
        self.number, self.revision = turn.number + 1, 1
