"""What the telephone's band and codec cost: recognition of callers, and how well the agent is understood."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jiwer
import numpy as np
import soundfile

from asr.recogniser import Recogniser
from bench.questions import QUESTIONS, record
from pipeline.audio import Audio, StreamResampler
from pipeline.hearing.audio_clock import RATE
from pipeline.models import catalogue
from tts.voice import Voice
from web.phone.encodings import MULAW
from web.phone.hearing import CallerAudio
from web.phone.speaking import AgentAudio
from web.phone.wire import Heard

READ_ALOUD = Path("/usr/share/pocketsphinx/test/data/librivox")
"""Read-aloud recordings with transcripts: the Debian package pocketsphinx-testdata."""

SENTENCES = (
    "Good morning, this is the dental practice of Doctor Bennett. How can I help you?",
    "We are open from Monday to Friday, between eight in the morning and six in the evening.",
    "On Saturday we close at one, and on Sunday the practice is closed.",
    "A cleaning costs ninety dollars, and a check-up costs sixty dollars.",
    "The price of a filling is one hundred and fifty dollars.",
    "You will find us on Maple Street, next to the public library.",
    "There is free parking behind the building.",
    "Please bring your insurance card and a list of your medicines.",
    "You can cancel for free until twenty four hours before your appointment.",
    "A late cancellation costs thirty dollars.",
    "New patients are always welcome. Have you been here before?",
    "We take all credit cards, and you can also pay in cash.",
    "I can offer you Tuesday at half past ten, or Thursday at a quarter to three.",
    "Could you please tell me your name and your telephone number?",
    "I have written that down. Is there anything else I can do for you?",
    "If your tooth hurts at night, take a pain killer and call us in the morning.",
    "The doctor is with a patient at the moment, but she will call you back within the hour.",
    "That is no problem at all. I will move your appointment to next week.",
    "Please do not eat anything for two hours after the treatment.",
    "Thank you for calling, and have a nice day. Goodbye.",
)


def over_the_telephone(audio: Audio) -> Audio:
    """A caller's 16 kHz as the recogniser gets it: 8 kHz mu-law in frames of 20 ms, through the bridge."""
    narrow = StreamResampler(RATE, MULAW.rate)
    data = MULAW.encode(np.concatenate([narrow.push(audio), narrow.flush()]))
    ear = CallerAudio(MULAW)
    size = MULAW.frame_bytes
    frames = (data[start : start + size] for start in range(0, len(data), size))
    return np.concatenate([ear.push(Heard(frame)) for frame in frames])


def at_the_callers_ear(samples: Audio, rate: int) -> Audio:
    """The agent's voice as the bridge sends it and a telephone plays it, brought to 16 kHz."""
    mouth = AgentAudio(MULAW)
    heard = MULAW.decode(b"".join([*mouth.push(samples, rate), *mouth.flush()]))
    return _at_16_khz(heard, MULAW.rate)


def recognition(recogniser: Recogniser, *, quick: bool) -> dict[str, Any]:
    """Word error rates of the same clips at 16 kHz and over the telephone."""
    clips = _clips(quick)
    texts = [text for text, _ in clips]
    wide = _error_rate(recogniser, texts, [audio for _, audio in clips])
    telephone = _error_rate(recogniser, texts, [over_the_telephone(audio) for _, audio in clips])
    return {
        "clips": len(clips),
        "wer_wideband": round(wide, 4),
        "wer_telephone": round(telephone, 4),
        "wer_minus_wideband": round(telephone - wide, 4),
    }


def intelligibility(recogniser: Recogniser, voice: Voice, *, quick: bool) -> dict[str, Any]:
    """Word error rates of the agent's voice, clean and at the caller's ear."""
    sentences = SENTENCES[:5] if quick else SENTENCES
    said = [_speak(voice, sentence) for sentence in sentences]
    clean = _error_rate(recogniser, sentences, [_at_16_khz(audio, voice.sample_rate) for audio in said])
    heard = [at_the_callers_ear(audio, voice.sample_rate) for audio in said]
    telephone = _error_rate(recogniser, sentences, heard)
    return {
        "sentences": len(sentences),
        "voice_wer_clean": round(clean, 4),
        "voice_wer_telephone": round(telephone, 4),
        "voice_wer_minus_clean": round(telephone - clean, 4),
    }


def _clips(quick: bool) -> list[tuple[str, Audio]]:
    """Spoken questions, and people reading aloud where those recordings are installed."""
    questions = QUESTIONS[:6] if quick else QUESTIONS
    paths = record(catalogue.cache() / "bench" / "questions", questions)
    clips = [
        (question.text, soundfile.read(path, dtype="float32")[0])
        for question, path in zip(questions, paths, strict=True)
    ]
    if READ_ALOUD.is_dir():
        said = re.findall(r"<s> (.*) </s> \((.*)\)", (READ_ALOUD / "transcription").read_text("utf-8"))
        clips += [
            (text, soundfile.read(READ_ALOUD / f"{name}.wav", dtype="float32")[0]) for text, name in said
        ]
    return clips


def _speak(voice: Voice, text: str) -> Audio:
    return np.concatenate([chunk.samples for chunk in voice.synthesise(text, cancelled=lambda: False)])


def _at_16_khz(samples: Audio, rate: int) -> Audio:
    resampler = StreamResampler(rate, RATE)
    return np.concatenate([resampler.push(samples), resampler.flush()])


def _error_rate(recogniser: Recogniser, texts: Sequence[str], clips: Sequence[Audio]) -> float:
    found = [_recognise(recogniser, clip) for clip in clips]
    plain: Callable[[str], str] = _plain
    return float(jiwer.wer([plain(text) for text in texts], [plain(text) for text in found]))


def _recognise(recogniser: Recogniser, audio: Audio) -> str:
    utterance = recogniser.open()
    utterance.feed(audio)
    return utterance.finish(lambda: False).text


_NUMBERS = {
    "8": "eight", "6": "six", "90": "ninety", "60": "sixty", "30": "thirty", "150": "one hundred and fifty",
    "24": "twenty four", "42": "forty two", "10": "ten", "2": "two", "3": "three", "1": "one", "dr": "doctor",
}  # fmt: skip


def _plain(text: str) -> str:
    """Lower case, no punctuation, numbers in words: as a listener would write it down."""
    words = re.findall(r"[a-z0-9']+", text.lower().replace("-", " ").replace("’", "'"))
    return " ".join(_NUMBERS.get(word, word) for word in words)
