"""The caller's side of a call: what is speech, where turns begin and go on, and who speaks over whom."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from asr.recogniser import Transcript
from asr.vad import EXIT, VoiceFrame
from pipeline.audio_clock import RATE
from pipeline.commit_gate import CommitGate
from pipeline.drafting import Drafting
from pipeline.echo import WINDOW_SECONDS, EchoGuard
from pipeline.events import Audio, SpeechDismissed, SpeechStarted, TranscriptDelta
from pipeline.interruption import AGREEMENTS, Verdict, judge, words
from pipeline.microphone import Microphone
from pipeline.reply import StageFailed
from pipeline.stages import Listening
from pipeline.turn import PREROLL_SECONDS, Turn

if TYPE_CHECKING:
    from pipeline.call import Call

log = logging.getLogger("rejoinder.call")

_STEP_SECONDS = 0.6
_STEP_SECONDS_OVER_AGENT = 0.3
"""New audio between recognition passes; shorter while the agent waits to know whether it is interrupted."""

_NOISE_SECONDS = 3.0
"""Speech over the agent without a word in it for that long is noise: the agent goes on."""

_NOISE_TURN_SECONDS = 6.0
"""The same while the agent is quiet: longer, for a caller who may be about to say something gets time."""

_DEAF_SECONDS = 2.0
"""Noise that does not stop is listened to again after so long, from where it was given up: the caller may be
speaking through it."""


_LOST_SECONDS = 1.0
"""Without any audio in the middle of speech for that long, the caller counts as quiet: a client's key was let
go, a line is dead."""


class Listener:
    """Owns the running turn. All methods run on the loop; models run on the stages' workers."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.number = 1
        self.revision = 1
        self.turn: Turn | None = None
        self.unrecognised: Turn | None = None  # committed before its words were known
        self.microphone = Microphone(call.now)
        self._drafting = Drafting(call)
        self._echo = EchoGuard(self.microphone, call.mouth.played_around)
        self._gate = CommitGate(call, self, self._drafting)
        self._deaf_since: int | None = None  # noise was judged to be noise: nothing is a turn until it stops
        self._lost_at: int | None = None  # the audio stopped here, in the middle of speech
        self._cut_at: int | None = None  # a turn was cut off here, in the middle of speech
        self._recognition: asyncio.Task[None] | None = None

    async def listen(self) -> None:
        """Voice activity over what comes in; its frames drive the turn. Raises StageFailed."""
        activity = self._call.stages.vad.open()
        self._call.start(self._drafting.prepare())
        while True:
            audio = await self._next_audio()
            try:
                frames = await self._call.stages.workers.run("vad", activity.push, audio)
            except Exception as error:
                raise StageFailed("asr", error) from error
            self.microphone.listened_to(audio)
            if self.turn is not None:
                self.turn.feed(audio)
            for frame in frames:
                self._frame(frame)

    async def _next_audio(self) -> Audio:
        if self.turn is not None and self.turn.quiet_since is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOST_SECONDS):
                    return await self.microphone.next()
            self._audio_is_lost()
        return await self.microphone.next()

    def _audio_is_lost(self) -> None:
        turn = self.turn
        if turn is not None and turn.quiet_since is None:
            self._lost_at = self.microphone.end
            self._fell_quiet(turn, self._lost_at)
            self._gate.quiet(turn, _LOST_SECONDS * 1000)

    def _audio_is_back(self, frame: VoiceFrame) -> None:
        """Voice activity has not noticed the gap: the first frame that is speech or its end says what came
        of it."""
        if frame.onset is not None or frame.offset is not None:
            self._lost_at = None
        elif self._lost_at is not None and frame.probability >= EXIT:
            onset, self._lost_at = self._lost_at, None
            self._speech_began(onset)

    def _frame(self, frame: VoiceFrame) -> None:
        if self._lost_at is not None:
            self._audio_is_back(frame)
        if frame.onset is not None:
            self._speech_began(frame.onset)
        if frame.offset is not None:
            self._deaf_since = self._cut_at = None
            self._echo.over()
            if self.turn is not None:
                self._fell_quiet(self.turn, frame.offset)
        elif self._echo.due(frame.end):
            self._speech_began(frame.end - round(WINDOW_SECONDS * RATE))
        elif self._deaf_since is not None:
            self._listen_again(frame.end)
        elif self._cut_at is not None:
            self._go_on_behind_the_cut(frame.end)
        turn = self.turn
        if turn is None:
            return
        turn.sounds(quiet=frame.speaking and frame.probability < EXIT and self._gate.may_anticipate(turn))
        if not frame.speaking and turn.quiet_since is not None:
            self._gate.quiet(turn, (frame.end - turn.quiet_since) / RATE * 1000)
        elif not turn.over_agent and turn.seconds > self._call.agent.patience.max_turn_seconds:
            log.warning("call %s turn %d: the caller did not stop", self._call.id, turn.number)
            turn.cut_off = True
            self.commit_now()
            self._cut_at = self.microphone.end

    def _fell_quiet(self, turn: Turn, at: int) -> None:
        """What went on behind a cut while the agent had begun to answer is speech over it, now that it ends:
        until then the agent says what it was cut for."""
        turn.quiet_since = at
        if turn.behind_cut and self._call.mouth.answer is not None:
            turn.over_agent = True

    def _go_on_behind_the_cut(self, here: int) -> None:
        """The caller did not stop where the turn was cut off: the next one begins there."""
        assert self._cut_at is not None
        if here > self._cut_at:
            turn = self._new_turn(self._cut_at, preroll_seconds=0.0)
            turn.behind_cut = True
            self._cut_at = None
            self._tell_speech_started(turn)

    def _listen_again(self, here: int) -> None:
        """The noise goes on, but the agent is quiet: give what is said through it another chance."""
        assert self._deaf_since is not None
        if self._call.mouth.answer is None and here - self._deaf_since >= _DEAF_SECONDS * RATE:
            onset, self._deaf_since = self._deaf_since, None
            self._speech_began(onset)

    # ---- speech begins and goes on

    def _speech_began(self, onset: int) -> None:
        self._cut_at = None
        if self._deaf_since is not None:
            return
        if self.turn is not None:
            if self.turn.quiet_since is not None:
                self.turn.go_on((onset - self.turn.quiet_since) / RATE * 1000)
                self.revision = self.turn.revision
            return
        if self._is_echo():
            return
        turn = self._new_turn(onset)
        if self._call.mouth.answer is None:
            self._tell_speech_started(turn)
        else:
            turn.over_agent = True
            if self._call.agent.interruptions.mode != "off":
                self._call.mouth.pause()
            self.weigh(turn, "", final=False)

    def _is_echo(self) -> bool:
        """Whether it is the agent's own voice, from a loudspeaker; counted once for as long as it sounds."""
        again, answer = self._echo.sounding, self._call.mouth.answer
        echo = self._echo.is_echo()
        if echo and not again and answer is not None:
            answer.echoes += 1
        return echo

    def _new_turn(self, onset: int, preroll_seconds: float = PREROLL_SECONDS) -> Turn:
        call = self._call
        start = max(0, onset - round(preroll_seconds * RATE))
        alone = () if call.mouth.answer is None else AGREEMENTS
        utterance = call.stages.recogniser.open(hotwords=call.agent.hotwords, alone=alone)
        turn = Turn(self.number, self.revision, start, onset, utterance, call.emit)
        turn.timeline.mark("speech_start", self.microphone.time_of(onset))
        turn.feed(self.microphone.since(start))
        self.turn = turn
        self._recognition = call.start(self._recognise(turn, utterance))
        return turn

    async def _recognise(self, turn: Turn, utterance: Listening) -> None:
        """Partial hypotheses while the caller speaks. Committed words go to the peer, never to be taken
        back."""
        while self.turn is turn:
            await turn.step_is_due(_STEP_SECONDS_OVER_AGENT if turn.over_agent else _STEP_SECONDS)
            try:
                partial = await self._call.stages.workers.run("asr", utterance.step, turn.step_token)
            except Exception as error:
                raise StageFailed("asr", error) from error
            if self.turn is not turn or turn.step_token():
                continue
            committed = "".join(word.text for word in partial.settled)
            if turn.over_agent:
                self.weigh(turn, committed + partial.tentative, final=False)
            if not turn.over_agent:
                self.tell_words(turn, committed)
                if turn.seconds > _NOISE_TURN_SECONDS and not words(committed + partial.tentative):
                    self._dismiss_noise(turn)
                elif self._call.stages.speculate and turn.attempt is None and not turn.falling_quiet:
                    self._call.start(self._drafting.prefill(committed + partial.tentative))

    def tell_words(self, turn: Turn, text: str) -> None:
        """Send the peer the committed words that it does not have yet."""
        if text.startswith(turn.told) and len(text) > len(turn.told):
            self._call.emit(TranscriptDelta(turn.number, turn.revision, text[len(turn.told) :]))
            turn.told = text

    def _tell_speech_started(self, turn: Turn) -> None:
        if turn.announced:
            return
        turn.announced = True
        self._call.emit(SpeechStarted(turn.number, turn.revision, turn.onset * 1000 // RATE))

    # ---- speech over the agent

    def agent_begins(self) -> None:
        """The agent begins to speak. A caller who has begun before it (the words of the turn before were
        known late) is to be heard first."""
        turn = self.turn
        if turn is None or turn.attempt is not None or turn.behind_cut:
            return
        if self._call.agent.interruptions.mode == "off":
            return
        turn.over_agent = True
        self._call.mouth.pause()

    def weigh(self, turn: Turn, text: str, *, final: bool, confidence: float = 1.0) -> Verdict:
        """Is this an interruption? Acts on the verdict (see `pipeline.interruption.judge`)."""
        mouth = self._call.mouth
        verdict = judge(
            self._call.agent.interruptions,
            text=text,
            final=final,
            agent_says=mouth.says,
            confidence=confidence,
            turn_is_over=mouth.answer is None,
        )
        if verdict == "wait" and not words(text) and turn.seconds > _NOISE_SECONDS:
            self._dismiss_noise(turn)
            return "resume"
        if verdict == "stop":
            turn.over_agent = False
            if (answer := mouth.stop()) is not None and not answer.heard.strip():
                turn.draft_from(answer.reply)
            self._tell_speech_started(turn)
        elif verdict == "resume":
            self.drop(turn)
        return verdict

    def _dismiss_noise(self, turn: Turn) -> None:
        log.info("call %s turn %d: %.1f s of noise", self._call.id, turn.number, turn.seconds)
        if turn.quiet_since is None:
            self._deaf_since = self.microphone.end
        self.drop(turn)

    def drop(self, turn: Turn) -> None:
        """It was no turn: noise, or a listening noise. The agent goes on where it stopped."""
        self.turn = None
        turn.close()
        if self._recognition is not None:
            self._recognition.cancel()
        self.revision = turn.revision + 1
        if turn.announced:
            heard_ms = self.microphone.end * 1000 // RATE
            self._call.emit(SpeechDismissed(turn.number, turn.revision, heard_ms))
        self._call.mouth.resume()

    def memory_amended(self) -> None:
        """What the running turn's draft was made from has changed: it is the draft of another one now."""
        turn = self.turn
        if turn is not None and turn.attempt is not None and turn.attempt.reply is not None:
            outdated = turn.attempt.reply
            outdated.cancel()
            turn.draft_from(outdated)
            turn.timeline.redraft()
            self._drafting.draft(turn, turn.attempt)

    # ---- turns end

    def turn_is_over(self, turn: Turn) -> None:
        """It was committed: what comes is the next turn."""
        self.turn = None
        self.number, self.revision = turn.number + 1, 1
        if self._recognition is not None:
            self._recognition.cancel()

    def mark_speech(self, turn: Turn) -> None:
        """Both ends of what the caller said, by one clock: it may have been set right since the beginning."""
        assert turn.quiet_since is not None
        if turn.timeline.mark("speech_end", self.microphone.time_of(turn.quiet_since)):
            turn.timeline.move("speech_start", self.microphone.time_of(turn.onset))

    def commit_now(self) -> None:
        """The client says the caller's turn is over, whatever the silence."""
        turn = self.turn
        if turn is None or turn.over_agent:
            return
        if turn.quiet_since is None:
            turn.quiet_since = self.microphone.end
        self.mark_speech(turn)
        self._gate.commit(turn, turn.attempt or turn.begin_attempt())

    def typed(self, text: str) -> None:
        """A turn without speech. What the caller is saying meanwhile is dropped; so is what the agent
        says."""
        if (turn := self.turn) is not None:
            self.drop(turn)
            if turn.told:  # the peer has seen words of it: its number is used up
                self._call.abandoned(turn, "replaced")
                self.turn_is_over(turn)
        self._call.mouth.stop()
        here = self.microphone.end
        turn = Turn(self.number, self.revision, here, here, None, self._call.emit)
        attempt = turn.begin_attempt()
        attempt.transcript = Transcript(text, (), 0.0)
        self._gate.commit(turn, attempt)

    def close(self) -> list[Turn]:
        """The call ends. Returns the turns that it cut off: one whose words were not known yet, and the one
        that the caller was in the middle of."""
        turn, self.turn = self.turn, None
        self._drafting.stop_prefill()
        if turn is not None:
            turn.close()
        return [cut for cut in (self.unrecognised, turn) if cut is not None and not cut.over_agent]
