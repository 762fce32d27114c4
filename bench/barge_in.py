"""Interruptions and listening noises in real time: how soon the agent is quiet, and what it believes was
heard."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from asr.recogniser import Recogniser
from bench.caller import Caller, with_call
from bench.report import percentile
from fixtures.over_the_agent import BACKCHANNELS, INTERRUPTIONS
from fixtures.speech import RATE, SPEAKERS, caller_voice, resampled, speak
from fixtures.unseen_over_the_agent import UNSEEN_BACKCHANNELS, UNSEEN_INTERRUPTIONS
from pipeline.audio import Audio
from pipeline.events import ClearPlayback, PausePlayback, ReplyAudio, ReplyDone, TurnLogged
from pipeline.service import Service
from tts.speakable import speakable

INTERRUPTIONS_A_CALL = 10


@dataclass(frozen=True, slots=True)
class Interruption:
    """`quiet_ms`: from the caller's first sample to the agent's last. `words_off`: heard text against the
    truth."""

    quiet_ms: float
    words_off: int


async def measure(service: Service, questions: Sequence[Audio], *, quick: bool) -> dict[str, Any]:
    """The same with what the word lists were made with (`tuned`) and with what nothing was chosen by
    (`unseen`)."""
    sets = {
        "tuned": (INTERRUPTIONS, BACKCHANNELS, 5),
        "unseen": (UNSEEN_INTERRUPTIONS, UNSEEN_BACKCHANNELS, 2),
    }
    return {
        name: await _measure(
            service, questions, interruptions, murmurs, calls=1 if quick else calls, quick=quick
        )
        for name, (interruptions, murmurs, calls) in sets.items()
    }


async def _measure(
    service: Service,
    questions: Sequence[Audio],
    interruptions: Sequence[str],
    backchannels: Sequence[str],
    *,
    calls: int,
    quick: bool,
) -> dict[str, Any]:
    """Interrupt answers, each by the question that is answered next, then only murmur over them."""
    rng = random.Random(1)
    voice = caller_voice(SPEAKERS[0])
    words = [speak(voice, text) for text in interruptions]
    murmurs = [(text, speak(voice, text)) for text in backchannels]
    measured: list[Interruption] = []
    for _ in range(calls):
        measured += await _interrupt(service, words, rng, 5 if quick else INTERRUPTIONS_A_CALL)
    times = 5 if quick else 20
    stopped, unnoticed = await _murmur(service, questions, murmurs, rng, times)
    exact = [i for i in measured if abs(i.words_off) <= 1]
    return {
        "interruptions": len(measured),
        "barge_in_p50_ms": percentile([i.quiet_ms for i in measured], 50),
        "barge_in_p95_ms": percentile([i.quiet_ms for i in measured], 95),
        "heard_text_within_a_word": round(len(exact) / len(measured), 3) if measured else None,
        "heard_text_words_off": sorted(i.words_off for i in measured),
        "backchannels": times,
        "backchannels_that_stopped": len(stopped),
        "backchannels_that_stopped_heard_as": stopped,
        "backchannels_unnoticed": unnoticed,
    }


async def _interrupt(
    service: Service, words: list[Audio], rng: random.Random, times: int
) -> list[Interruption]:
    """One call. An answer that ends before its interruption is heard, or that is cut off before its first
    sound, does not count; one more is tried."""
    caller = Caller()
    recogniser = service.stages.recogniser
    assert isinstance(recogniser, Recogniser)
    cut: list[tuple[float, ReplyDone]] = []

    async def talk() -> None:
        await caller.greeting_over()
        caller.say(words[-1])
        for number in range(2 * times):
            await caller.wait_for(ReplyAudio)
            await asyncio.sleep(rng.uniform(0.5, 1.6))
            said = words[number % len(words)]
            spoke = asyncio.get_running_loop().time() + _lead_of_silence(said)
            caller.say(said)
            done = await caller.wait_for(ReplyDone)
            if done.status == "interrupted" and _sounded(caller, done.reply_id):
                cut.append((spoke, done))
            if len(cut) == times:
                return

    with service.line(caller, origin="bench") as call:
        await with_call(call, caller, talk)
    results = []
    for spoke, done in cut:
        quiet = _first_since(caller, spoke)
        truth = await asyncio.to_thread(_recognise, recogniser, _played(caller, done.reply_id, quiet))
        results.append(Interruption((quiet - spoke) * 1000, words_off(done.text, done.heard, truth)))
    return results


async def _murmur(
    service: Service,
    questions: Sequence[Audio],
    murmurs: Sequence[tuple[str, Audio]],
    rng: random.Random,
    times: int,
) -> tuple[list[str], int]:
    """(what those that stopped the agent were heard as, how many did not even make it pause)."""
    caller = Caller()
    stopped: list[str] = []
    unnoticed = 0

    async def talk() -> None:
        nonlocal unnoticed
        await caller.greeting_over()
        for number in range(times):
            await _answer_begins(caller, questions[number % len(questions)])
            await asyncio.sleep(rng.uniform(0.3, 0.9))
            text, murmur = murmurs[number % len(murmurs)]
            caller.say(murmur)
            logged = await caller.wait_for(TurnLogged)
            if logged.record["status"] == "interrupted":
                after = await caller.wait_for(TurnLogged)
                stopped.append(f"{text} -> {after.record['caller_text']}")
            elif not logged.record["extra"]["false_interruptions"]:
                unnoticed += 1
            await asyncio.sleep(1.0)

    with service.line(caller, origin="bench") as call:
        await with_call(call, caller, talk)
    return stopped, unnoticed


async def _answer_begins(caller: Caller, question: Audio) -> None:
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


def _sounded(caller: Caller, reply_id: str) -> bool:
    return any(isinstance(event, ReplyAudio) and event.reply_id == reply_id for _, event in caller.events)


def _played(caller: Caller, reply_id: str, until: float) -> Audio:
    """What a client that plays at once and without gaps has played of a reply by then, at 16 kHz."""
    chunks = [(at, e) for at, e in caller.events if isinstance(e, ReplyAudio) and e.reply_id == reply_id]
    rate = chunks[0][1].rate
    audio = np.concatenate([e.samples for _, e in chunks])[: round((until - chunks[0][0]) * rate)]
    return resampled(audio, rate)


def _recognise(recogniser: Recogniser, audio: Audio) -> str:
    utterance = recogniser.open()
    utterance.feed(audio)
    return utterance.finish(lambda: False).text


def words_off(reply: str, heard: str, truth: str) -> int:
    """By how many words of the reply `heard` goes further than `truth`, a transcript of what was played.

    The transcript's last word that is in the reply, in order, is where playing stopped.
    """
    said = SequenceMatcher(None, _words(reply), _words(truth), autojunk=False).get_matching_blocks()
    return len(_words(heard)) - max((block.a + block.size for block in said if block.size), default=0)


def _words(text: str) -> list[str]:
    """One by one as they are said, so that a number that was broken off has its place: lower case, without
    punctuation."""
    return re.findall(r"[a-z']+", speakable(text).text.lower())
