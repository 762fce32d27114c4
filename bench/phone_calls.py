"""Interruptions and long calls at simulated carriers, in virtual time: exact, whatever the machine."""

from __future__ import annotations

import asyncio
import gc
import random
import time
import tracemalloc
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from asr.vad import SileroVad, VoiceFrame
from bench.report import percentile
from fixtures.fakes import LevelVad, Parrot
from fixtures.noise_reader import NoiseReader, what_was_heard
from fixtures.phone_scene import PhoneScene
from fixtures.speech import RATE
from fixtures.virtual_time import run
from pipeline.audio import Audio
from web.phone.simulator.call import PlayedFrame
from web.phone.simulator.line import Network

CARRIERS = ("twilio", "telnyx", "plivo", "asterisk")
"""Those with mu-law at 8 kHz, in which a frame can be placed in the reply byte by byte."""

NETWORK = Network(latency=0.02, jitter=0.01)
"""20 to 30 ms one way, as to a carrier's edge on the same continent."""

_TURN_SECONDS = 12.0


def interruptions(question: Audio, callers: Sequence[Audio], *, quick: bool) -> dict[str, Any]:
    """Interrupt a reply with real speech, heard by the real voice activity detector, at many moments.

    Speech at 16 kHz that begins at its first sample. Milliseconds from the caller's first sample at the
    carrier to the end of the last frame of the agent that was played.
    """
    rng = random.Random(1)
    vad = NotingVad()
    last: list[float] = []
    detected: list[float] = []
    off: list[int] = []
    for carrier in CARRIERS:
        for number in range(3 if quick else 12):
            caller = callers[number % len(callers)]
            spoke = rng.uniform(4.0, 7.0)
            scene = _interrupted(carrier, vad, question, caller, spoke, seed=number)
            before = _until_silent(scene.phone.played, spoke)
            last.append((before[-1].at + 0.02 - spoke) * 1000)
            detected.append((next(at for at in vad.onsets if at > spoke) - spoke) * 1000)
            heard = what_was_heard(scene.voice, before, _sentences(scene))
            really = sum(1 for _, count in heard.words if count)
            off.append(abs(len(scene.service.records[0].heard_text.split()) - really))
    return {
        "interruptions": len(last),
        "detected_p50_ms": percentile(detected, 50),
        "detected_p95_ms": percentile(detected, 95),
        "silent_after_detection_max_ms": round(float(np.subtract(last, detected).max()), 1),
        "last_sample_p50_ms": percentile(last, 50),
        "last_sample_p95_ms": percentile(last, 95),
        "last_sample_max_ms": round(max(last), 1),
        "heard_text_within_a_word": round(sum(words <= 1 for words in off) / len(off), 3),
    }


class NotingVad:
    """The real detector; notes when it found that speech had begun."""

    def __init__(self) -> None:
        self.onsets: list[float] = []
        self._silero = SileroVad()
        self._stream = self._silero.open()

    def open(self) -> NotingVad:
        self.onsets.clear()
        self._stream = self._silero.open()
        return self

    def push(self, audio: Audio) -> list[VoiceFrame]:
        frames = self._stream.push(audio)
        if any(frame.onset is not None for frame in frames):
            self.onsets.append(asyncio.get_running_loop().time())
        return frames


def _until_silent(played: Sequence[PlayedFrame], spoke: float) -> list[PlayedFrame]:
    """What the caller heard until, having spoken, they heard nothing for a while."""
    after = [frame.at for frame in played if frame.at >= spoke]
    end = next((one for one, following in pairwise(after) if following - one > 0.1), after[-1])
    return [frame for frame in played if frame.at <= end]


def _interrupted(
    carrier: str, vad: NotingVad, question: Audio, caller: Audio, spoke: float, seed: int
) -> PhoneScene:
    asked, end = 0.4 + question.size / RATE, spoke + caller.size / RATE
    scene = PhoneScene(
        carrier,
        words=[
            (" Count", asked - 0.3),
            (" please.", asked - 0.1),
            (" Wait", spoke + 0.5),
            (" stop.", end - 0.2),
        ],
        recordings=[(0.4, question), (spoke, caller)],
        language=Parrot(lambda text: _long_reply(6) if "Count" in text else "Yes?"),
        voice=NoiseReader(),
        vad=vad,
        network=Network(NETWORK.latency, NETWORK.jitter, seed=seed),
        seconds=end + 4.0,
    )
    return run(scene.play())


def false_interruptions(*, quick: bool) -> dict[str, Any]:
    """Twenty coughs over one long reply at each carrier: words that were lost, and words heard twice."""
    coughs = 5 if quick else 20
    lost = repeated = 0
    repeats: list[float] = []
    for carrier in CARRIERS:
        scene = PhoneScene(
            carrier,
            speech=[(0.5, 1.5)] + [(4.0 + 2.5 * n, 4.2 + 2.5 * n) for n in range(coughs)],
            words=[(" Count", 1.0), (" please.", 1.4)],
            language=Parrot(lambda text: _long_reply(coughs + 2)),
            voice=NoiseReader(),
            network=NETWORK,
            seconds=30.0 + 7.0 * coughs,
        )
        run(scene.play())
        heard = what_was_heard(scene.voice, scene.phone.played, _sentences(scene))
        lost += sum(count == 0 for _, count in heard.words)
        repeated += sum(count > 1 for _, count in heard.words)
        repeats.append(float((heard.times - 1).clip(0).sum()) / 8000 / coughs * 1000)
        assert scene.service.records[0].status == "completed"
    return {
        "false_interruptions": coughs * len(CARRIERS),
        "words_lost": lost,
        "words_repeated": repeated,
        "audio_repeated_a_resume_ms": round(max(repeats), 1),
    }


def _long_reply(sentences: int) -> str:
    """Sentences of five seconds, no two of them alike."""
    ordinal = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
    names = [f"{ordinal[n // 10 % 10]} {ordinal[n % 10]}" for n in range(sentences)]
    return " ".join(f"This is the {name} of all the sentences that make up the answer." for name in names)


def _sentences(scene: PhoneScene) -> list[str]:
    """The long reply's sentences as the voice got them, in order."""
    return [text for text in scene.voice.bytes if text.startswith("This is the ")]


def long_call(*, quick: bool) -> dict[str, Any]:
    """An hour of questions and answers, as fast as one core can.

    Speed: seconds of the call a second of the processor. Drift: the caller's audio as heard, against what was
    sent. A shorter call is traced for memory, which takes several times as long.
    """
    minutes = 6 if quick else 60
    watch = Watch()
    began = time.process_time()
    scene = _talk(minutes, watch)
    took = time.process_time() - began
    return {
        "minutes": minutes,
        "speed": round(minutes * 60 / took, 1),
        "turns": _turns(minutes),
        "turns_unanswered": _turns(minutes) - watch.answered,
        "drift_ms": watch.drift_ms(),
        "left_in_queues": _left(scene),
        "refused_by_the_carrier": len(scene.phone.refused),
        "memory_a_turn_bytes": _memory_a_turn(4 if quick else 16),
    }


def _turns(minutes: int) -> int:
    return int(minutes * 60 / _TURN_SECONDS)


def _talk(minutes: int, watch: Watch) -> PhoneScene:
    starts = [5.0 + _TURN_SECONDS * turn for turn in range(_turns(minutes))]
    scene = PhoneScene(
        "twilio",
        words=[word for at in starts for word in ((" Hello", at + 0.6), (" there.", at + 0.9))],
        vad=watch.vad,
        network=NETWORK,
        seconds=minutes * 60.0,
        keep=False,
    )
    scene.actions = [(at, _ask) for at in starts]
    scene.actions += [(60.0 * minute, watch.look) for minute in range(1, minutes)]
    run(scene.play())
    watch.count(scene)
    return scene


def _memory_a_turn(minutes: int) -> int:
    """Bytes that the bridge and the pipeline hold more after each turn, between a call's quarters.

    The words of the turn are among them: the agent remembers the conversation.
    """
    tracemalloc.start()
    watch = Watch()
    try:
        _talk(minutes, watch)
    finally:
        tracemalloc.stop()
    quarter = max(1, len(watch.held) // 4)
    early, late = watch.held[quarter : 2 * quarter], watch.held[-quarter:]
    looks_between = len(watch.held) - 2 * quarter
    return round(float(np.mean(late) - np.mean(early)) / (looks_between * 60 / _TURN_SECONDS))


def _left(scene: PhoneScene) -> int:
    """What waits anywhere on the way when the call is over."""
    left = scene.phone.player.frames + scene.call._outbox._queue.qsize()
    for queue in (scene.line.to_bridge, scene.line.to_carrier):
        while not queue.empty():
            left += queue.get_nowait() is not None  # None says that the line is closed
    return left


def _ask(scene: PhoneScene) -> None:
    scene.phone.say(np.full(8000, 0.9, np.float32), 8000)


class Watch:
    """Looks once a minute at how much audio has arrived and, while memory is traced, at what is held."""

    def __init__(self) -> None:
        self.vad = CountingVad()
        self.answered = 0
        self.held: list[int] = []
        self._behind_ms: list[float] = []

    def look(self, scene: PhoneScene) -> None:
        self.count(scene)
        sent = scene.phone.frames_sent * 0.02
        self._behind_ms.append((sent - self.vad.samples / RATE) * 1000)
        if tracemalloc.is_tracing():
            gc.collect()
            ours = [tracemalloc.Filter(True, f"*/{folder}/*") for folder in ("web/phone", "pipeline")]
            held = tracemalloc.take_snapshot().filter_traces(ours).statistics("filename")
            self.held.append(sum(one.size for one in held))

    def count(self, scene: PhoneScene) -> None:
        """Take the finished turns off the service's hands, and off the fakes' what they kept of them."""
        self.answered += sum(record.status == "completed" for record in scene.service.records)
        for kept in (scene.service.records, scene.language.prompts, scene.language.drafts, scene.voice.said):
            kept.clear()

    def drift_ms(self) -> float:
        """How far the service's audio clock moved against the carrier's between the call's first quarter and
        its last; one look is exact to a frame."""
        quarter = max(1, len(self._behind_ms) // 4)
        early, late = self._behind_ms[:quarter], self._behind_ms[-quarter:]
        return round(float(np.mean(late) - np.mean(early)), 1)


class CountingVad(LevelVad):
    """Counts what the call has listened to."""

    def __init__(self) -> None:
        super().__init__()
        self.samples = 0

    def open(self) -> CountingVad:
        return self

    def push(self, audio: Audio) -> list[Any]:
        self.samples += audio.size
        return super().push(audio)
