"""What callers and their lines do, with the real models that listen and answer, in virtual time: hesitations,
corrections, single words, noise, music, coughs, and what microphones and networks do to a voice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest

from bench.calls import differing_replies
from fixtures import lines, noises
from fixtures.fakes import QUIET, Scene
from fixtures.questions import QUESTIONS
from fixtures.speech import RATE, caller_voice, silence, speak
from fixtures.virtual_time import run
from fixtures.words import plain, word_error_rate
from llm.language_model import Sampling
from pipeline.agent import Agent, Patience, Silence, choose_agent
from pipeline.events import CallEnded, CallFailed, SpeechDismissed, SpeechStarted, TranscriptDone
from tests.calls.conftest import LiveServer
from tests.machine import program

PRICE = QUESTIONS[3]
BEGIN = 0.5


@cache
def said(text: str) -> np.ndarray:
    program("espeak-ng")
    return speak(caller_voice("piper-joe"), text)


@dataclass
class Line(Scene):
    """A caller whose microphone is a recording that begins at BEGIN; then silence."""

    recording: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))

    def microphone(self, times: np.ndarray) -> np.ndarray:
        at = np.round((times - BEGIN) * RATE).astype(int)
        audio = np.zeros(times.size, np.float32)
        there = (at >= 0) & (at < self.recording.size)
        audio[there] = self.recording[at[there]]
        return audio


def line(live: LiveServer, *parts: np.ndarray | float, **changes: object) -> Line:
    """The parts one after the other (a number is silence in seconds), into the models of the live server. The
    answer is the caller's own words, said by a fake voice, unless a test asks for more."""
    pieces = [np.zeros(round(p * RATE), np.float32) if isinstance(p, float) else p for p in parts]
    recording = np.concatenate(pieces).astype(np.float32)
    stages = live.service.stages
    values: dict[str, object] = {
        "speech": [],
        "words": [],
        "seconds": BEGIN + recording.size / RATE + 3.0,
        "recording": recording,
        "vad": stages.vad,
        "hearing": stages.recogniser,
        "detector": stages.end_of_turn,
        "agent": Agent(name="test", persona="Be brief.", silence=QUIET),
    }
    return Line(**values | changes)  # type: ignore[arg-type]


def transcripts(scene: Scene) -> list[str]:
    assert not scene.peer.of(CallFailed)
    return [event.text for event in scene.peer.of(TranscriptDone)]


def test_a_hesitation_within_a_sentence_is_one_turn(live: LiveServer) -> None:
    scene = line(live, said("I would like to book a cleaning on"), 0.5, said("Friday afternoon."))
    run(scene.play())
    (text,) = transcripts(scene)
    assert word_error_rate("I would like to book a cleaning on Friday afternoon.", text) <= 0.2
    assert scene.records[0].extra["longest_pause_ms"] > 300


def test_a_correction_refutes_the_draft_and_no_token_of_the_reply_changes(live: LiveServer) -> None:
    """The agent waits for longer than the pause: the first question's answer is drafted, and not said."""
    changes = {"greeting": "", "silence": QUIET, "patience": Patience(min_silence_ms=1000)}
    scene = line(
        live,
        said("How much does a cleaning cost?"),
        0.5,
        said("No, sorry. How much does a filling cost?"),
        agent=choose_agent("receptionist").model_copy(update=changes),
        language=live.service.stages.language,
        seconds=20.0,
    )
    call = run(scene.play())
    (text,) = transcripts(scene)
    assert "cleaning" in text
    assert "filling" in text
    (record,) = scene.records
    assert record.extra["refutations"] >= 1
    assert record.language["reply_draft_tokens"] > 0
    sampling = Sampling(**call.agent.sampling.model_dump())
    assert differing_replies(live.service, [call.dialogue.messages()], sampling) == (0, 1)


@pytest.mark.parametrize("word", ["Yes.", "Tuesday."])
def test_one_word_is_a_turn(live: LiveServer, word: str) -> None:
    scene = line(live, said(word))
    run(scene.play())
    assert [plain(text) for text in transcripts(scene)] == [plain(word)]


# ---- what is no speech


def music(seconds: float) -> np.ndarray:
    return noises.hold_music(np.random.default_rng(2), seconds)


SOUNDS = {
    "fan": noises.fan(np.random.default_rng(1), 6.0),
    "music": music(8.0),
    "coughs": noises.coughs(np.random.default_rng(3), 3),
}


@pytest.mark.parametrize("sound", SOUNDS)
def test_what_is_no_speech_is_no_turn(live: LiveServer, sound: str) -> None:
    scene = line(live, SOUNDS[sound])
    run(scene.play())
    assert transcripts(scene) == []
    assert scene.records == []
    assert len(scene.peer.of(SpeechStarted)) == len(scene.peer.of(SpeechDismissed))


def test_a_caller_on_hold_is_asked_and_then_left(live: LiveServer) -> None:
    silence = Silence(after_seconds=3, text="Are you there?", times=1, farewell="Goodbye.")
    agent = Agent(name="test", persona="Be brief.", silence=silence)
    scene = line(live, music(20.0), agent=agent)
    run(scene.play())
    assert scene.peer.of(CallEnded)[0].reason == "silence"


# ---- what microphones and networks do


@pytest.mark.parametrize("spoil", [lines.clipped, lines.offset, lines.packets_lost, lines.faint])
def test_a_spoilt_line_is_understood(live: LiveServer, spoil: Callable[[np.ndarray], np.ndarray]) -> None:
    whole = np.concatenate([silence(0.5), said(PRICE.text), silence(2.0)])
    scene = line(live, spoil(whole))
    run(scene.play())
    (text,) = transcripts(scene)
    assert word_error_rate(PRICE.text, text) <= 0.2


def test_jitter_does_not_move_the_marks(live: LiveServer) -> None:
    marks = {}
    for jitter in (0.0, 0.3):
        scene = line(live, said(PRICE.text), jitter_seconds=jitter)
        run(scene.play())
        (text,) = transcripts(scene)
        assert word_error_rate(PRICE.text, text) <= 0.2
        marks[jitter] = scene.records[0]
    smooth, late = (marks[jitter].durations["endpoint"] for jitter in (0.0, 0.3))
    assert late == pytest.approx(smooth, abs=400)
    assert marks[0.3].marks["speech_start"] == pytest.approx(marks[0.0].marks["speech_start"], abs=100)
