"""Interruptions and listening noises in real time: how soon the agent is quiet, and what it believes was
heard."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from asr.recogniser import Recogniser
from bench.caller import RATE, Caller, with_call
from bench.questions import SPEAKERS, caller_voice, speak
from bench.report import percentile
from pipeline.audio import StreamResampler
from pipeline.call import Call
from pipeline.events import Audio, ClearPlayback, PausePlayback, ReplyAudio, ReplyDone, TurnLogged
from pipeline.service import Service

INTERRUPTIONS = (
    "No, wait, I have another question.",
    "Sorry, when do you close on Friday?",
    "Stop, how much is a cleaning?",
    "Actually, where are you located?",
)
BACKCHANNELS = ("Uh-huh.", "Right.", "Okay.", "Yeah.", "I see.")


@dataclass(frozen=True, slots=True)
class Interruption:
    """`quiet_ms`: from the caller's first sample to the agent's last. `words_off`: heard text against the
    truth."""

    quiet_ms: float
    words_off: int


async def measure(service: Service, questions: Sequence[Audio], *, quick: bool) -> dict[str, Any]:
    """Interrupt the answers to questions, then only murmur over them."""
    rng = random.Random(1)
    voice = caller_voice(SPEAKERS[0])
    words = [speak(voice, text) for text in INTERRUPTIONS]
    murmurs = [speak(voice, text) for text in BACKCHANNELS]
    interruptions = await _interrupt(service, questions, words, rng, 5 if quick else 50)
    times = 5 if quick else 20
    stopped = await _murmur(service, questions, murmurs, rng, times)
    exact = [i for i in interruptions if abs(i.words_off) <= 1]
    return {
        "interruptions": len(interruptions),
        "barge_in_p50_ms": percentile([i.quiet_ms for i in interruptions], 50),
        "barge_in_p95_ms": percentile([i.quiet_ms for i in interruptions], 95),
        "heard_text_within_a_word": round(len(exact) / len(interruptions), 3),
        "backchannels": times,
        "backchannels_that_stopped": stopped,
    }


async def _interrupt(
    service: Service, questions: Sequence[Audio], words: list[Audio], rng: random.Random, times: int
) -> list[Interruption]:
    caller = Caller()
    call = service.call(caller, origin="bench")
    recogniser = service.stages.recogniser
    assert isinstance(recogniser, Recogniser)
    results: list[Interruption] = []

    async def talk() -> None:
        await caller.greeting_over()
        for number in range(times):
            await _answer_begins(call, caller, questions[number % len(questions)])
            await asyncio.sleep(rng.uniform(0.5, 1.4))
            caller.say(words[number % len(words)])
            spoke = asyncio.get_running_loop().time() + _lead_of_silence(words[number % len(words)])
            done = await caller.wait_for(ReplyDone)
            if done.status == "interrupted":
                quiet = _first_since(caller, spoke)
                truth = _recognise(recogniser, _played(caller, done.reply_id, quiet))
                off = len(_words(done.heard)) - len(_words(truth))
                results.append(Interruption((quiet - spoke) * 1000, off))
                await caller.wait_for(TurnLogged, lambda event: event.record["status"] != "interrupted")

    await with_call(call, caller, talk)
    return results


async def _murmur(
    service: Service, questions: Sequence[Audio], murmurs: list[Audio], rng: random.Random, times: int
) -> int:
    caller = Caller()
    call = service.call(caller, origin="bench")
    stopped = 0

    async def talk() -> None:
        nonlocal stopped
        await caller.greeting_over()
        for number in range(times):
            await _answer_begins(call, caller, questions[number % len(questions)])
            await asyncio.sleep(rng.uniform(0.3, 0.9))
            caller.say(murmurs[number % len(murmurs)])
            logged = await caller.wait_for(TurnLogged)
            stopped += logged.record["status"] == "interrupted"
            await asyncio.sleep(1.0)

    await with_call(call, caller, talk)
    return stopped


async def _answer_begins(call: Call, caller: Caller, question: Audio) -> None:
    caller.say(question)
    await caller.wait_for(ReplyAudio)


def _lead_of_silence(audio: Audio) -> float:
    """Seconds before the first audible sample."""
    return float(np.argmax(np.abs(audio) > 0.01)) / RATE


def _first_since(caller: Caller, since: float) -> float:
    """When the agent fell silent: the first pause or clear since then."""
    return next(
        at for at, event in caller.events if at >= since and isinstance(event, PausePlayback | ClearPlayback)
    )


def _played(caller: Caller, reply_id: str, until: float) -> Audio:
    """What a client that plays at once and without gaps has played of a reply by then, at 16 kHz."""
    chunks = [(at, e) for at, e in caller.events if isinstance(e, ReplyAudio) and e.reply_id == reply_id]
    rate = chunks[0][1].rate
    audio = np.concatenate([e.samples for _, e in chunks])[: round((until - chunks[0][0]) * rate)]
    resampler = StreamResampler(rate, RATE)
    return np.concatenate([resampler.push(audio), resampler.flush()])


def _recognise(recogniser: Recogniser, audio: Audio) -> str:
    utterance = recogniser.open()
    utterance.feed(audio)
    return utterance.finish(lambda: False).text


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower())
