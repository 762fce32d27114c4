"""The phone bridge: what the telephone costs, how soon an interrupted agent is silent, and an hour's call.

    python -m bench.phone --json [--quick]

Recognition and voice are the real ones. Interruptions and the long call run at simulated carriers in virtual
time: their figures are the bridge's own and do not depend on the machine.
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

import numpy as np

from asr.recogniser import Recogniser
from bench import phone_calls, phone_noise, phone_speech
from bench.barge_in import INTERRUPTIONS
from bench.questions import QUESTIONS, SPEAKERS, caller_voice, speak
from bench.report import machine, show
from pipeline.audio import Audio, StreamResampler
from pipeline.config import load
from pipeline.hearing.audio_clock import RATE
from pipeline.large_pages import start_with_large_pages
from pipeline.models import catalogue
from tts.load import load_voice
from web.phone.encodings import MULAW

GOALS = {
    "wer_minus_wideband": "<= 0.03",
    "voice_wer_minus_clean": "<= 0.01",
    "silent_after_detection_max_ms": "<= 100",
    "last_sample_p95_ms": "<= 250",
    "heard_text_within_a_word": ">= 0.95",
    "words_lost": "0",
    "words_repeated": "0",
    "speed": ">= 20",
    "drift_ms": "<= 20",
    "memory_a_turn_bytes": "<= 1000",
    "left_in_queues": "0",
    "refused_by_the_carrier": "0",
}


def measure(*, quick: bool) -> dict[str, Any]:
    """Run the benchmark; every figure of its report by name."""
    settings = load()
    path = Path(settings.asr_model).expanduser()
    recogniser = Recogniser(path if path.exists() else catalogue.path(settings.asr_model), threads=2)
    recogniser.warm_up()
    voice = load_voice(settings.voice, cache=catalogue.converted())
    speaker = caller_voice(SPEAKERS[0])
    callers = [_from_the_first_sound(speak(speaker, text)) for text in INTERRUPTIONS]
    question = _from_the_first_sound(speak(speaker, QUESTIONS[0].text))
    return {
        **machine(),
        **phone_speech.recognition(recogniser, quick=quick),
        **phone_speech.intelligibility(recogniser, voice, quick=quick),
        **phone_calls.interruptions(question, callers, quick=quick),
        **phone_noise.false_onsets(quick=quick),
        **phone_calls.false_interruptions(quick=quick),
        **phone_calls.long_call(quick=quick),
    }


def _from_the_first_sound(audio: Audio) -> Audio:
    """From where it can be heard on a telephone, which does not carry the s of "Stop"."""
    narrow = StreamResampler(RATE, MULAW.rate)
    line = MULAW.decode(MULAW.encode(np.concatenate([narrow.push(audio), narrow.flush()])))
    return audio[int(np.argmax(np.abs(line) > 0.01)) * RATE // MULAW.rate :]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="few clips, few interruptions, six minutes")
    arguments = parser.parse_args()
    start_with_large_pages()
    logging.basicConfig(level=logging.ERROR)
    show("The phone bridge", measure(quick=arguments.quick), as_json=arguments.json, goals=GOALS)


if __name__ == "__main__":
    main()
