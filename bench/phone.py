"""The phone bridge: what the telephone costs, how soon an interrupted agent is silent, and an hour's call.

    python -m bench.phone --json [--quick]

Recognition and voice are the real ones. Interruptions and the long call run at simulated carriers in virtual
time: their figures are the bridge's own and do not depend on the machine.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path
from typing import Any

import numpy as np

from asr.recogniser import Recogniser
from bench import phone_calls, phone_noise, phone_speech
from bench.report import Goal, machine, report
from fixtures.over_the_agent import INTERRUPTIONS
from fixtures.questions import QUESTIONS
from fixtures.speech import RATE, SPEAKERS, caller_voice, resampled, speak
from pipeline.audio import Audio
from pipeline.config import load
from pipeline.large_pages import start_with_large_pages
from pipeline.models import catalogue
from tts.load import load_voice
from web.phone.encodings import MULAW

GOALS = (
    Goal("word errors that the telephone adds, callers", "wer_minus_wideband", "<=", 0.03),
    Goal("word errors that the telephone adds, the agent", "voice_wer_minus_clean", "<=", 0.01),
    Goal("milliseconds from detection to silence", "silent_after_detection_max_ms", "<=", 100),
    Goal("milliseconds from the caller's first sample to silence", "last_sample_p95_ms", "<=", 250),
    Goal("heard text right within a word", "heard_text_within_a_word", ">=", 0.95),
    Goal("words lost by false interruptions", "words_lost", "==", 0),
    Goal("words repeated by false interruptions", "words_repeated", "==", 0),
    Goal("seconds of call a second of processor", "speed", ">=", 20),
    Goal("milliseconds of drift in an hour", "drift_ms", "<=", 20),
    Goal("bytes kept a turn", "memory_a_turn_bytes", "<=", 1000),
    Goal("left in queues", "left_in_queues", "==", 0),
    Goal("refused by the carrier", "refused_by_the_carrier", "==", 0),
    Goal("turns of the long call unanswered", "turns_unanswered", "==", 0),
)


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
    line = MULAW.decode(MULAW.encode(resampled(audio, RATE, MULAW.rate)))
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
    figures = measure(quick=arguments.quick)
    sys.exit(report("The phone bridge", figures, GOALS, as_json=arguments.json))


if __name__ == "__main__":
    main()
