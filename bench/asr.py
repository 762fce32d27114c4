"""Recognition: how soon after the caller's last word the transcript is final, and how right it is.

    python -m bench.asr --json [--quick]

The contestant is stock faster-whisper: `transcribe` with its defaults on the whole utterance, the same model,
compute type and threads, one after the other for each utterance. Ours hears the utterance arrive at
real-time pace on a virtual clock: each pass takes the time it took, audio goes on arriving meanwhile, and a
pass that is still running when the caller stops is waited for. `unseen`: the same for sentences by which
nothing was chosen.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
from faster_whisper import WhisperModel

from asr.recogniser import Recogniser, Word
from bench.report import Goal, machine, percentile, report
from fixtures.recordings import LEFT_OUT
from fixtures.speech import RATE, SPEAKERS, silence
from fixtures.unseen_utterances import UNSEEN_SENTENCES
from fixtures.utterances import SENTENCES, Spoken, recorded, spoken
from fixtures.words import word_error_rate
from pipeline.audio import Audio
from pipeline.large_pages import start_with_large_pages
from pipeline.models import catalogue

CHUNK = 0.02  # seconds of audio in a packet
DETECTION = 0.1  # seconds of silence until voice activity says that the caller is quiet
GOALS = (
    Goal("final transcript, share of stock's time", "final_over_stock", "<=", 0.35),
    Goal("the same, unseen sentences", "unseen.final_over_stock", "<=", 0.35),
    Goal("word errors beyond stock's", "wer_minus_stock", "<=", 0.005),
    Goal("the same, unseen sentences", "unseen.wer_minus_stock", "<=", 0.02),
    Goal("words taken back", "retractions", "==", 0),
    Goal("work a second of audio", "real_time_factor", "<=", 0.5),
    Goal("the same after a minute", "real_time_factor_second_minute", "<=", 0.5),
)


def never() -> bool:
    return False


@dataclass
class Heard:
    """One utterance as it was recognised. `passes`: (seconds of audio, seconds of work) of each step."""

    text: str = ""
    final_seconds: float = 0.0
    retractions: int = 0
    committed: tuple[Word, ...] = ()
    passes: list[tuple[float, float]] = field(default_factory=list)


def listen(recogniser: Recogniser, speech: Audio) -> Heard:
    """The utterance at real-time pace. `final_seconds` begins when the caller is known to be quiet."""
    audio = np.concatenate([silence(0.3), speech, silence(DETECTION)])
    utterance, heard = recogniser.open(), Heard()
    fed, free_at = 0, 0.0
    chunk = round(CHUNK * RATE)
    while fed < len(audio):
        utterance.feed(audio[fed : fed + chunk])
        fed += chunk
        now = fed / RATE
        if now < free_at or not utterance.due or fed >= len(audio):
            continue
        started = time.perf_counter()
        partial = utterance.step(never)
        cost = time.perf_counter() - started
        heard.retractions += partial.settled[: len(heard.committed)] != heard.committed
        heard.committed = partial.settled
        heard.passes.append((now, cost))
        free_at = now + cost
    started = time.perf_counter()
    transcript = utterance.finish(never)
    heard.final_seconds = time.perf_counter() - started + max(0.0, free_at - len(audio) / RATE)
    heard.retractions += transcript.words[: len(heard.committed)] != heard.committed
    heard.text = transcript.text
    return heard


class Stock:
    """faster-whisper as its README uses it, with the language given."""

    def __init__(self, threads: int) -> None:
        self._model = WhisperModel(
            str(catalogue.path("whisper-base")), compute_type="int8", cpu_threads=threads
        )

    def transcribe(self, audio: Audio) -> tuple[str, float]:
        started = time.perf_counter()
        segments, _ = self._model.transcribe(audio, language="en")
        text = "".join(segment.text for segment in segments)
        return text, time.perf_counter() - started


def monologue(utterances: Sequence[Spoken], seconds: float) -> Audio:
    """The utterances one after the other, with pauses between them, again and again up to a length."""
    pauses = np.random.default_rng(7)
    parts: list[Audio] = []
    while sum(map(len, parts)) < seconds * RATE:
        utterance = utterances[len(parts) // 2 % len(utterances)]
        parts += [utterance.audio, silence(pauses.uniform(0.15, 0.7))]
    return np.concatenate(parts)[: round(seconds * RATE)]


def measure(*, threads: int, quick: bool) -> dict[str, Any]:
    recogniser = Recogniser(catalogue.path("whisper-base"), threads=threads)
    recogniser.warm_up()
    stock = Stock(threads)
    utterances = [*recorded(), *_in_turn(SENTENCES)]
    unseen = _in_turn(UNSEEN_SENTENCES)
    if quick:
        utterances, unseen = utterances[::4], unseen[::4]
    stock.transcribe(utterances[0].audio)
    ours, theirs = _both(recogniser, stock, utterances)
    unseen_ours, unseen_theirs = _both(recogniser, stock, unseen)
    talk = listen(recogniser, monologue(utterances, 40 if quick else 120))
    return {
        **_compare(utterances, ours, theirs),
        "unseen": _compare(unseen, unseen_ours, unseen_theirs),
        "retractions": sum(heard.retractions for heard in (*ours, *unseen_ours, talk)),
        "real_time_factor": _load(talk.passes, 0),
        "real_time_factor_second_minute": None if quick else _load(talk.passes, 60),
        "monologue_final_ms": round(talk.final_seconds * 1000, 1),
        "utterances": len(utterances),
        "unseen_utterances": len(unseen),
        "threads": threads,
        "note": "" if recorded() else LEFT_OUT,
        **machine(),
    }


def _in_turn(sentences: tuple[str, ...]) -> list[Spoken]:
    """Each sentence once, the speakers taking turns."""
    return [
        utterance
        for number, speaker in enumerate(SPEAKERS)
        for utterance in spoken(speaker, sentences[number :: len(SPEAKERS)])
    ]


def _both(
    recogniser: Recogniser, stock: Stock, utterances: Sequence[Spoken]
) -> tuple[list[Heard], list[tuple[str, float]]]:
    """Every utterance heard by both, who take turns in being the first."""
    ours, theirs = [], []
    for number, utterance in enumerate(utterances):
        if number % 2:
            theirs.append(stock.transcribe(utterance.audio))
        ours.append(listen(recogniser, utterance.audio))
        if not number % 2:
            theirs.append(stock.transcribe(utterance.audio))
    return ours, theirs


def _compare(
    utterances: Sequence[Spoken], ours: Sequence[Heard], theirs: Sequence[tuple[str, float]]
) -> dict[str, Any]:
    truth = [utterance.text for utterance in utterances]
    wer = word_error_rate(truth, [heard.text for heard in ours])
    stock_wer = word_error_rate(truth, [text for text, _ in theirs])
    final = [heard.final_seconds * 1000 for heard in ours]
    stock = [seconds * 1000 for _, seconds in theirs]
    return {
        "final_over_stock": round(median(final) / median(stock), 3),
        "final_p50_ms": percentile(final, 50),
        "final_p95_ms": percentile(final, 95),
        "stock_p50_ms": percentile(stock, 50),
        "stock_p95_ms": percentile(stock, 95),
        "wer": round(wer, 4),
        "stock_wer": round(stock_wer, 4),
        "wer_minus_stock": round(wer - stock_wer, 4),
        "committed_before_the_end": round(
            sum(len(heard.committed) for heard in ours) / sum(len(heard.text.split()) for heard in ours), 3
        ),
    }


def _load(passes: Sequence[tuple[float, float]], since: float) -> float | None:
    """Seconds of work for each second of audio, from `since` on."""
    late = [(at, cost) for at, cost in passes if at >= since]
    return round(sum(cost for _, cost in late) / (late[-1][0] - since), 3) if late else None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--quick", action="store_true", help="a quarter of the utterances, a shorter monologue"
    )
    parser.add_argument("--threads", type=int, default=1, help="of one pass, for both (default 1)")
    arguments = parser.parse_args()
    start_with_large_pages()
    figures = measure(threads=arguments.threads, quick=arguments.quick)
    left_out = ["--quick"] if arguments.quick else []
    sys.exit(
        report(
            "Recognition, against stock faster-whisper",
            figures,
            GOALS,
            as_json=arguments.json,
            left_out=left_out,
        )
    )


if __name__ == "__main__":
    main()
