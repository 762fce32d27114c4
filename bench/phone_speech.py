"""What the telephone's band and codec cost: recognition of callers, and how well the agent is understood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import soundfile

from asr.recogniser import Recogniser
from fixtures.questions import QUESTIONS, record
from fixtures.recordings import read_aloud
from fixtures.speech import RATE, resampled, said
from fixtures.words import word_error_rate
from pipeline.audio import Audio
from pipeline.models import catalogue
from tts.voice import Voice
from web.phone.encodings import MULAW
from web.phone.hearing import CallerAudio
from web.phone.speaking import AgentAudio
from web.phone.wire import Heard

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
    data = MULAW.encode(resampled(audio, RATE, MULAW.rate))
    ear = CallerAudio(MULAW)
    size = MULAW.frame_bytes
    frames = (data[start : start + size] for start in range(0, len(data), size))
    return np.concatenate([ear.push(Heard(frame)) for frame in frames])


def at_the_callers_ear(samples: Audio, rate: int) -> Audio:
    """The agent's voice as the bridge sends it and a telephone plays it, brought to 16 kHz."""
    mouth = AgentAudio(MULAW)
    heard = MULAW.decode(b"".join([*mouth.push(samples, rate), *mouth.flush()]))
    return resampled(heard, MULAW.rate)


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
    spoken = [said(voice, sentence) for sentence in sentences]
    clean = _error_rate(recogniser, sentences, [resampled(audio, voice.sample_rate) for audio in spoken])
    heard = [at_the_callers_ear(audio, voice.sample_rate) for audio in spoken]
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
    return clips + [(read.text, read.audio) for read in read_aloud()]


def _error_rate(recogniser: Recogniser, texts: Sequence[str], clips: Sequence[Audio]) -> float:
    return word_error_rate(texts, [_recognise(recogniser, clip) for clip in clips])


def _recognise(recogniser: Recogniser, audio: Audio) -> str:
    utterance = recogniser.open()
    utterance.feed(audio)
    return utterance.finish(lambda: False).text
