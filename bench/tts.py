"""Voices: the first sound, the pace, what streaming changes, and whether a recogniser hears what was written.

python -m bench.tts [--json] [--quick]

All of it takes about five minutes on two cores, --quick a minute and a half.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soxr
from faster_whisper import WhisperModel
from hibari import voices as hibari_voices

from bench.report import Goal, machine, percentile, report
from bench.tts_sentences import PLAIN, Case, cases
from bench.unseen_tts_sentences import unseen_cases
from fixtures.words import plain, word_error_rate
from pipeline.large_pages import start_with_large_pages
from pipeline.models import catalogue
from tts.hibari import HibariVoice
from tts.hibari_network import HibariNetwork
from tts.hibari_phonemes import HibariPhonemes
from tts.phrases import PreparedVoice
from tts.piper import PiperVoice
from tts.speakable import speakable
from tts.voice import Samples, Voice

GOALS = (
    Goal("milliseconds to the first audio", "first_audio_p50_ms", "<=", 40),
    Goal("work a second of audio", "real_time_factor", "<=", 0.05),
    Goal("milliseconds to the first audio, cores busy, p95", "busy_first_audio_p95_ms", "<=", 150),
    Goal("times that a player ran dry, cores busy", "busy_playback_gaps", "==", 0),
    Goal("what streaming changes, embedded voice", "embedded_streamed_max_difference", "==", 0),
    Goal("Piper's first audio, share of the whole's time", "piper_first_audio_over_whole", "<=", 0.5),
    Goal("what streaming changes, Piper", "piper_max_difference", "<=", 1e-5),
    Goal("words misheard, the sentences tuned by", "round_trip.tuned.wer", "<=", 0.04),
    Goal("words misheard, unseen sentences", "round_trip.unseen.wer", "<=", 0.06),
    Goal("step at a seam beyond the whole's largest", "seam_excess", "<=", 0),
)
EIGHT_WORDS_OR_MORE = (
    "Our doctor is away this week, but her colleague can see you.",
    "The nearest station is five minutes away on foot.",
    "You will get a message when the repair is done.",
    "I am sorry, we have no appointments left on Monday.",
    "The engineer will call you before he arrives at your house, and he will wait for ten minutes.",
)
GREETING = "Hello, this is Maple Street Dental. How can I help you?"
RECOGNISING = """
import sys, numpy as np
from faster_whisper import WhisperModel
model = WhisperModel(sys.argv[1], compute_type="int8", cpu_threads=1)
audio = np.random.default_rng(0).standard_normal(80_000).astype(np.float32) * 0.05
print("ready", flush=True)
while True:
    list(model.transcribe(audio, language="en", beam_size=1)[0])
"""


@dataclass(frozen=True, slots=True)
class Take:
    """One unit said: seconds to its first chunk and to its end, the audio, and how often it ran dry."""

    first: float
    total: float
    audio: Samples
    gaps: int


def take(voice: Voice, text: str) -> Take:
    """Say `text` once, as a player hears it that starts with the first chunk."""
    began = time.perf_counter()
    first = played_until = 0.0
    gaps = 0
    parts: list[Samples] = []
    for chunk in voice.synthesise(text, cancelled=lambda: False):
        now = time.perf_counter() - began
        if not parts:
            first = played_until = now
        gaps += now > played_until
        played_until += len(chunk.samples) / voice.sample_rate
        parts.append(chunk.samples)
    return Take(first, time.perf_counter() - began, np.concatenate(parts), gaps)


def embedded(voice: Voice, rounds: int) -> dict[str, Any]:
    """First audio and pace on a machine with nothing else to do, sentences of at most twelve words."""
    takes = [take(voice, text) for _ in range(rounds) for text in PLAIN if len(text.split()) <= 12]
    seconds = sum(len(t.audio) for t in takes) / voice.sample_rate
    return {
        "first_audio_p50_ms": percentile([1000 * t.first for t in takes], 50),
        "first_audio_p95_ms": percentile([1000 * t.first for t in takes], 95),
        "whole_sentence_p50_ms": percentile([1000 * t.total for t in takes], 50),
        "real_time_factor": round(sum(t.total for t in takes) / seconds, 4),
    }


def prepared(voice: Voice, rounds: int) -> dict[str, Any]:
    """First audio of a greeting that was synthesised when the service started."""
    ready = PreparedVoice(voice, [GREETING])
    return {
        "prepared_first_audio_p50_ms": percentile(
            [1000 * take(ready, GREETING).first for _ in range(10 * rounds)], 50
        )
    }


def busy(voice: Voice, rounds: int) -> dict[str, Any]:
    """The same while two processes recognise speech without a pause, one a core."""
    with _recognising(2):
        takes = [take(voice, text) for _ in range(rounds) for text in PLAIN if len(text.split()) <= 12]
    return {
        "busy_first_audio_p95_ms": percentile([1000 * t.first for t in takes], 95),
        "busy_playback_gaps": sum(t.gaps for t in takes),
    }


@contextmanager
def _recognising(processes: int) -> Iterator[None]:
    command = [sys.executable, "-c", RECOGNISING, str(catalogue.path("whisper-base"))]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(processes)]
    try:
        for process in running:
            if process.stdout is None or process.stdout.readline() != b"ready\n":
                raise RuntimeError("the recognising process did not start")
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def embedded_streaming() -> dict[str, Any]:
    """Windows against the whole sentence, and the steps between samples where windows meet."""
    phonemes = HibariPhonemes(british=False)
    network = HibariNetwork(Path(hibari_voices.voice_path("heart")).read_bytes())
    differences, excesses = [], []
    for text in PLAIN[:10]:
        for segment in phonemes.segments(text):
            windows = list(network.say(segment.ids).windows)
            whole = network.whole(network.encode(segment.ids))
            differences.append(_difference(windows, whole))
            excesses.append(_seam_excess(windows, whole))
    return {
        "embedded_streamed_max_difference": max(differences),
        "embedded_seam_excess": max(excesses),
    }


def piper(rounds: int) -> dict[str, Any]:
    """A Piper voice streamed against the same voice decoded whole, call by call in turn."""
    voice = PiperVoice(catalogue.path("piper-joe"))
    streamed, whole, differences, excesses = [], [], [], []
    for _ in range(rounds):
        for text in EIGHT_WORDS_OR_MORE:
            streamed.append(take(voice, text).first)
            began = time.perf_counter()
            (segment,) = voice.phonemes.segments(speakable(text).text)
            encoded = voice.network.encode(segment.ids)
            audio = voice.network.whole(encoded)
            whole.append(time.perf_counter() - began)
            windows = list(voice.network.stream(encoded))
            differences.append(_difference(windows, audio))
            excesses.append(_seam_excess(windows, audio))
    return {
        "piper_first_audio_p50_ms": percentile([1000 * s for s in streamed], 50),
        "piper_whole_p50_ms": percentile([1000 * s for s in whole], 50),
        "piper_first_audio_over_whole": round(float(np.median(streamed) / np.median(whole)), 3),
        "piper_max_difference": max(differences),
        "piper_seam_excess": max(excesses),
    }


def _difference(windows: Sequence[Samples], whole: Samples) -> float:
    return float(np.abs(np.concatenate(windows) - whole).max())


def _seam_excess(windows: Sequence[Samples], whole: Samples) -> float:
    """How much larger the largest step between two samples at a seam is than the whole decode's largest."""
    streamed = np.concatenate(windows)
    seams = np.cumsum([len(window) for window in windows if len(window)])[:-1]
    steps = np.abs(np.diff(streamed))[seams - 1]
    return float(steps.max(initial=0.0) - np.abs(np.diff(whole)).max())


def round_trip(voice: Voice, sentences: Sequence[Case]) -> dict[str, Any]:
    """Word error rate of base Whisper on the voice's audio against the written text, both made speakable.

    Two sentences are recognised at a time, one a core, which is faster than each on two.
    """
    model = WhisperModel(
        str(catalogue.path("whisper-base")), compute_type="int8", cpu_threads=1, num_workers=2
    )

    def said_and_heard(case: Case) -> tuple[str, str]:
        audio = soxr.resample(take(voice, case.text).audio, voice.sample_rate, 16_000)
        segments, _ = model.transcribe(audio, language="en", beam_size=5, condition_on_previous_text=False)
        written = " ".join(segment.text for segment in segments)
        return comparable(case.text, case.kind), comparable(written, case.kind)

    heard: dict[str, list[tuple[str, str]]] = {}
    with ThreadPoolExecutor(2) as pool:
        for case, pair in zip(sentences, pool.map(said_and_heard, sentences), strict=True):
            heard.setdefault(case.kind, []).append(pair)
    pairs = [pair for kind in heard.values() for pair in kind]
    return {
        "sentences": len(pairs),
        "wer": _word_error_rate(pairs),
        "wer_by_kind": {kind: _word_error_rate(found) for kind, found in heard.items()},
        "misheard": [f"{said} | {got}" for said, got in pairs if said != got][:40],
    }


def comparable(text: str, kind: str) -> str:
    """What is said for `text`, so that "$5" and "five dollars" are the same; then as transcripts are.

    Whisper writes a time that it heard as 4:29, 4.29 or 429.
    """
    if kind == "time":
        text = re.sub(r"(\d)[:.](\d\d)", r"\1\2", text)
    return plain(speakable(text).text)


def _word_error_rate(pairs: Sequence[tuple[str, str]]) -> float:
    said, got = zip(*pairs, strict=True)
    return round(word_error_rate(said, got), 4)


def measure(*, quick: bool) -> dict[str, Any]:
    voice = HibariVoice()
    voice.warm_up()
    figures = embedded(voice, 1 if quick else 5)
    figures |= prepared(voice, 1 if quick else 5)
    figures |= busy(voice, 1 if quick else 3)
    figures |= embedded_streaming()
    figures |= piper(1 if quick else 3)
    figures["round_trip"] = {
        "tuned": round_trip(voice, cases(42 if quick else 200)),
        "unseen": round_trip(voice, unseen_cases()),
    }
    figures["seam_excess"] = max(figures["embedded_seam_excess"], figures["piper_seam_excess"])
    return figures | machine()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and sentences")
    options = parser.parse_args()
    start_with_large_pages()
    sys.exit(report("Voices", measure(quick=options.quick), GOALS, as_json=options.json))


if __name__ == "__main__":
    main()
