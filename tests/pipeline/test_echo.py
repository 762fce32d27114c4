"""The agent's own voice in the caller's microphone: a loudspeaker without echo cancellation, in virtual time,
with real voices and the real voice activity."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest

from asr.vad import SileroVad
from fixtures.fakes import QUIET, Parrot, RecordingPeer, Scene
from fixtures.speech import RATE, caller_voice, speak
from fixtures.virtual_time import run
from pipeline.agent import Agent, Interruptions
from pipeline.events import (
    CallEvent,
    ClearPlayback,
    PausePlayback,
    ReplyAudio,
    ResumePlayback,
    SpeechStarted,
)
from pipeline.hearing.echo import likeness
from tests.machine import program
from tts.voice import VoiceChunk, WordTiming

ANSWER = (
    "We are open Monday to Friday from eight in the morning to six in the evening, and on Saturday until one."
)
OVER_IT = "No, wait, I have another question about Saturday."
ASKED = 0.3
"""Seconds: the caller's question is typed, so the answer begins right then."""


@cache
def agents_voice() -> np.ndarray:
    return speak(caller_voice("hibari"), ANSWER)


@cache
def callers_voice() -> np.ndarray:
    """As loud as the agent's."""
    program("espeak-ng")
    audio = speak(caller_voice("piper-joe"), OVER_IT)
    return audio * np.float32(np.sqrt(np.mean(agents_voice() ** 2) / np.mean(audio**2)))


class Recorded:
    """A voice that says everything as one recording."""

    name = "recorded"
    sample_rate = RATE

    def warm_up(self) -> None:
        """Nothing to warm."""

    def synthesise(self, text: str, *, cancelled: Callable[[], bool]) -> Iterator[VoiceChunk]:
        audio = agents_voice()
        seconds = audio.size / RATE
        step = RATE // 25
        for start in range(0, audio.size, step):
            if cancelled():
                return
            words = (WordTiming(0, len(text), 0.0, seconds),) if start == 0 else ()
            yield VoiceChunk(audio[start : start + step], words)


class Loudspeaker(RecordingPeer):
    """Plays what it gets as soon as it gets it, and keeps what it has played by time."""

    def __init__(self) -> None:
        super().__init__()
        self.played = np.zeros(60 * RATE, np.float32)
        self._waiting = np.zeros(0, np.float32)
        self._paused = False
        self._until = 0

    async def send(self, event: CallEvent) -> None:
        await super().send(event)
        self.play()
        match event:
            case ReplyAudio(samples=samples):
                self._waiting = np.concatenate([self._waiting, samples])
            case PausePlayback():
                self._paused = True
            case ResumePlayback():
                self._paused = False
            case ClearPlayback():
                self._waiting, self._paused = self._waiting[:0], False

    def play(self) -> None:
        """Up to now."""
        here = round(asyncio.get_running_loop().time() * RATE)
        if not self._paused:
            now, self._waiting = np.split(self._waiting, [here - self._until])
            self.played[self._until : self._until + now.size] = now
        self._until = here


@dataclass
class Room(Scene):
    """The microphone hears the loudspeaker after a delay, some noise, and the caller from `caller_at` on."""

    gain: float = 0.25
    delay: float = 0.15
    caller_at: float | None = None
    peer: Loudspeaker = field(default_factory=Loudspeaker)
    noise: np.random.Generator = field(default_factory=lambda: np.random.default_rng(3))

    def microphone(self, times: np.ndarray) -> np.ndarray:
        self.peer.play()
        at = np.round(times * RATE).astype(int)
        echo = self.gain * self.peer.played[np.maximum(0, at - round(self.delay * RATE))]
        audio = echo + self.noise.normal(0, 0.001, at.size)
        if self.caller_at is not None:
            caller = callers_voice()
            since = at - round(self.caller_at * RATE)
            spoken = (since >= 0) & (since < caller.size)
            audio[spoken] += caller[since[spoken]]
        return audio.astype(np.float32)


def room(attenuation_db: float, delay: float, **changes: object) -> Room:
    values: dict[str, object] = {
        "speech": [],
        "words": [],
        "seconds": 9.0,
        "actions": [(ASKED, lambda call: call.say_text("When are you open?"))],
        "vad": SileroVad(),
        "voice": Recorded(),
        "language": Parrot(lambda _: ANSWER),
        "gain": 10 ** (-attenuation_db / 20),
        "delay": delay,
        "agent": Agent(name="test", persona="Be brief.", silence=QUIET),
        "packet_seconds": 0.04,
    }
    return Room(**values | changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("delay", [0.03, 0.15, 0.3])
@pytest.mark.parametrize("attenuation_db", [6, 12, 20])
def test_the_agents_echo_does_not_interrupt_it(attenuation_db: float, delay: float) -> None:
    scene = room(attenuation_db, delay)
    run(scene.play())
    assert not scene.peer.of(PausePlayback, ClearPlayback, SpeechStarted)
    (record,) = scene.records
    assert record.status == "completed"
    assert record.extra["echoes"] >= 1, "voice activity did hear it"


def test_an_echo_does_not_interrupt_an_agent_that_stops_at_once() -> None:
    stops = Agent(
        name="test", persona="Be brief.", silence=QUIET, interruptions=Interruptions(mode="at_once")
    )
    scene = room(10, 0.1, agent=stops)
    run(scene.play())
    assert scene.records[0].status == "completed"


@pytest.mark.parametrize("delay", [0.03, 0.3])
@pytest.mark.parametrize("attenuation_db", [6, 20])
def test_a_caller_who_speaks_over_the_echo_interrupts(attenuation_db: float, delay: float) -> None:
    over = [
        (" No,", 3.0),
        (" wait,", 3.3),
        (" I", 3.6),
        (" have", 3.8),
        (" another", 4.2),
        (" question.", 4.8),
    ]
    scene = room(attenuation_db, delay, caller_at=2.5, words=over)
    run(scene.play())
    first = scene.records[0]
    assert first.status == "interrupted"
    (paused, *_) = scene.peer.times(PausePlayback)
    assert 2.5 < paused < 3.5
    assert scene.records[1].caller_text.endswith("another question.")


def test_likeness_is_of_shape_not_of_loudness() -> None:
    rng = np.random.default_rng(1)
    played = rng.normal(0, 0.1, 8000).astype(np.float32)
    heard = played[3000:5000]
    assert likeness(0.01 * heard + 0.3, played) == pytest.approx(1.0, abs=1e-3)
    assert likeness(rng.normal(0, 0.1, 2000).astype(np.float32), played) < 0.2
    assert likeness(heard + rng.normal(0, 0.1, 2000).astype(np.float32), played) == pytest.approx(
        0.7, abs=0.05
    )
    assert likeness(np.zeros(2000, np.float32), played) == 0.0
    assert likeness(heard, np.zeros(8000, np.float32)) == 0.0
