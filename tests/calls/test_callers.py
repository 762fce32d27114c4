"""What callers and their lines do, with the real models that listen and answer, in virtual time: hesitations,
corrections, single words, noise, music, coughs, and what microphones and networks do to a voice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import jiwer
import numpy as np
import pytest

from bench.calls import differing_replies
from bench.questions import QUESTIONS, caller_voice, speak
from llm.language_model import Sampling
from pipeline.agent import Agent, Patience, Silence, choose_agent
from pipeline.events import CallEnded, CallFailed, SpeechDismissed, SpeechStarted, TranscriptDone
from tests.calls.conftest import LiveServer
from tests.calls.test_whole_calls import plain
from tests.machine import program
from tests.pipeline.fakes import QUIET, RATE, Scene
from tests.virtual_time import run

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
    assert jiwer.wer("i would like to book a cleaning on friday afternoon", plain(text)) <= 0.2
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


def noise(seconds: float) -> np.ndarray:
    """Of a fan: low-passed, about -25 dBFS."""
    white = np.random.default_rng(1).normal(0, 1, round(seconds * RATE))
    low = np.convolve(white, np.ones(8) / 8, mode="same")
    return (0.05 * low / low.std()).astype(np.float32)


def music(seconds: float) -> np.ndarray:
    """Hold music: plucked chords, four a bar."""
    rng, times = np.random.default_rng(2), np.arange(round(0.5 * RATE)) / RATE
    chords = [(262, 330, 392), (220, 262, 330), (175, 220, 262), (196, 247, 294)]
    bars = []
    for number in range(round(seconds / 0.5)):
        tones = [
            np.sin(2 * np.pi * tone * harmonic * times) / harmonic
            for tone in chords[number // 4 % 4]
            for harmonic in (1, 2, 3, 4)
        ]
        bars.append(np.sum(tones, axis=0) * np.exp(-3 * times) * rng.uniform(0.8, 1.0))
    tune = np.concatenate(bars)
    return (0.2 * tune / np.abs(tune).max()).astype(np.float32)


def coughs(count: int) -> np.ndarray:
    """Bursts of noise of a third of a second, each with a sharp beginning and a voiced end."""
    rng, times = np.random.default_rng(3), np.arange(round(0.35 * RATE)) / RATE
    pieces = []
    for _ in range(count):
        burst = rng.normal(0, 1, times.size) * np.exp(-12 * times)
        voiced = np.sign(np.sin(2 * np.pi * 140 * times)) * np.exp(-((times - 0.18) ** 2) / 0.004)
        pieces += [0.3 * burst + 0.1 * voiced, np.zeros(round(1.5 * RATE))]
    return np.concatenate(pieces).astype(np.float32)


@pytest.mark.parametrize("sound", [noise(6.0), music(8.0), coughs(3)], ids=["noise", "music", "coughs"])
def test_what_is_no_speech_is_no_turn(live: LiveServer, sound: np.ndarray) -> None:
    scene = line(live, sound)
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


def packets_lost(audio: np.ndarray) -> np.ndarray:
    """One packet of 20 ms in a hundred is silence."""
    audio, size = audio.copy(), round(0.02 * RATE)
    for number in np.random.default_rng(4).choice(audio.size // size, audio.size // size // 100 + 1):
        audio[number * size : (number + 1) * size] = 0
    return audio


@pytest.mark.parametrize(
    "spoil",
    [
        lambda audio: np.clip(10 * audio, -1, 1),
        lambda audio: audio + 0.3,
        packets_lost,
        lambda audio: 0.03 * audio,
    ],
    ids=["clipped", "offset", "lost packets", "faint"],
)
def test_a_spoilt_line_is_understood(live: LiveServer, spoil: Callable[[np.ndarray], np.ndarray]) -> None:
    whole = np.concatenate(
        [np.zeros(RATE // 2, np.float32), said(PRICE.text), np.zeros(2 * RATE, np.float32)]
    )
    scene = line(live, spoil(whole))
    run(scene.play())
    (text,) = transcripts(scene)
    assert jiwer.wer(plain(PRICE.text), plain(text)) <= 0.2


def test_jitter_does_not_move_the_marks(live: LiveServer) -> None:
    marks = {}
    for jitter in (0.0, 0.3):
        scene = line(live, said(PRICE.text), jitter_seconds=jitter)
        run(scene.play())
        (text,) = transcripts(scene)
        assert jiwer.wer(plain(PRICE.text), plain(text)) <= 0.2
        marks[jitter] = scene.records[0]
    smooth, late = (marks[jitter].durations["endpoint"] for jitter in (0.0, 0.3))
    assert late == pytest.approx(smooth, abs=400)
    assert marks[0.3].marks["speech_start"] == pytest.approx(marks[0.0].marks["speech_start"], abs=100)
