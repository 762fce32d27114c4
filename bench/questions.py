"""What a caller asks the receptionist: spoken questions, and what a right answer must and must not say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from pipeline.audio import Audio, StreamResampler
from pipeline.models import catalogue
from tts.load import load_voice
from tts.voice import Voice

RATE = 16_000


@dataclass(frozen=True, slots=True)
class Question:
    """`right`: patterns of which each must be found in the answer (lower case); `wrong`: none may be."""

    text: str
    right: tuple[str, ...]
    wrong: tuple[str, ...] = ()

    def is_right(self, answer: str) -> bool:
        said = answer.lower().replace("-", " ").replace("’", "'")
        return all(re.search(p, said) for p in self.right) and not any(re.search(p, said) for p in self.wrong)


QUESTIONS = (
    Question("What time do you open on Monday?", (r"eight|8",), ("nine",)),
    Question("Are you open on Sunday?", (r"closed|not open|no\b",)),
    Question("How late are you open on Saturday?", (r"\bone\b|\b1\b",), ("six",)),
    Question("How much does a cleaning cost?", (r"ninety|90",)),
    Question("What is the price of a filling?", (r"one hundred and fifty|one hundred fifty|150",)),
    Question("Where are you located?", (r"maple street",)),
    Question("Is there parking?", (r"free parking|behind the building|yes",)),
    Question("Can I come in without an appointment?", (r"walk ins|appointment",), (r"\byes\b",)),
    Question("Can I cancel my appointment for free?", (r"twenty four|24",)),
    Question("What is the name of the dentist?", (r"bennett",)),
    Question("Do you take credit cards?", (r"credit card|yes",)),
    Question("Do you accept dental insurance?", (r"insurance|yes",)),
    Question("How much is a late cancellation?", (r"thirty|30",)),
    Question("Are you taking new patients?", (r"welcome|yes",)),
    Question("What is the price of a check-up?", (r"sixty|60",)),
    Question("When do you close on Friday?", (r"\bsix\b|\b6\b",), (r"\bone\b",)),
    Question("What number do I call in an emergency?", (r"five five five|555",)),
    Question("Where can I leave my car?", (r"parking|behind",)),
    Question("What are your opening hours on Saturday?", (r"nine|9", r"\bone\b|\b1\b")),
    Question("My name is Peter Miller. Please repeat my name.", (r"peter miller",)),
    Question("Who will treat me?", (r"bennett",)),
    Question("Can I pay in cash?", (r"cash|yes",)),
    Question("Do you sell concert tickets?", (r"message|sorry|do not|don't|not\b",)),
    Question("Is the practice near the library?", (r"library|yes",)),
    Question("My order number is forty two. Can you repeat the number?", (r"forty two|42",)),
    Question("What day are you closed?", (r"sunday",)),
    Question("How much do you charge for a filling?", (r"one hundred and fifty|one hundred fifty|150",)),
    Question("What happens if I cancel too late?", (r"thirty|30",)),
    Question("Do I need an appointment?", (r"appointment",)),
    Question("What is your street address?", (r"maple",)),
)

SPEAKERS = ("piper-joe", "hibari")
"""Voices of the caller in turn; the first is not a voice the agent has."""


def caller_voice(name: str) -> Voice:
    """A voice for the caller. Raises what the voice raises when its phonemes' program is missing."""
    if name == "hibari":
        return load_voice("hibari")
    return load_voice(f"piper:{catalogue.path(name)}", cache=catalogue.converted())


def speak(voice: Voice, text: str) -> Audio:
    """`text` as float32 mono at 16 kHz, without silence at its ends beyond the voice's own."""
    resampler = StreamResampler(voice.sample_rate, RATE)
    parts = [resampler.push(chunk.samples) for chunk in voice.synthesise(text, cancelled=lambda: False)]
    return np.concatenate([*parts, resampler.flush()])


def record(folder: Path, questions: Sequence[Question] = QUESTIONS) -> list[Path]:
    """Speak the questions into WAV files (16 kHz), once; returns their paths in order."""
    folder.mkdir(parents=True, exist_ok=True)
    voices: dict[str, Voice] = {}
    paths = []
    for number, question in enumerate(questions):
        speaker = SPEAKERS[number % len(SPEAKERS)]
        slug = re.sub(r"[^a-z0-9]+", "-", question.text.lower()).strip("-")
        path = folder / f"{slug}.{speaker}.wav"
        if not path.exists():
            voice = voices.setdefault(speaker, caller_voice(speaker))
            soundfile.write(path, speak(voice, question.text), RATE)
        paths.append(path)
    return paths
