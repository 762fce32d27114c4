"""Recordings with controlled pauses: a caller who hesitates within a sentence, and one who has finished.

A hold is a pause put into the gap between two words of a whole sentence, so that the melody before it is
that of a sentence that goes on; an end is a sentence's true end. Gaps are found by aligning the words with
the audio. A hold may last as long as hesitations in spoken English do: 55.6 % outlast 300 ms of silence,
21.7 % 600, 10 % 1,000 and 5 % 1,600 (the voice-activity row of LiveKit's eot-bench), so each place is
weighed with all lengths and not with one drawn by chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from asr.whisper import FRAMES_PER_SECOND, Whisper
from fixtures.speech import RATE, silence
from fixtures.utterances import Spoken, voiced
from pipeline.audio import Audio

HISS = 10 ** (-62 / 20)  # a line is never quite silent
WORDS_A_HOLD = 3
_MS = (100.0, 300.0, 600.0, 1000.0, 1600.0, 2600.0)
_OUTLAST = (1.0, 0.556, 0.217, 0.10, 0.05, 0.01)


@dataclass(frozen=True, slots=True)
class Pause:
    """`audio`: what was said before, ending with the voice; `said`: its words.

    `held`: the caller goes on. `ambiguous`: although the sentence could have ended here.
    """

    speaker: str
    sentence: str
    said: str
    audio: Audio
    held: bool
    ambiguous: bool = False

    def after(self, seconds: float) -> Audio:
        """The turn's audio after so much of the pause, with the line's hiss."""
        audio = np.concatenate([silence(0.3), self.audio, silence(seconds)])
        hiss = np.random.default_rng(len(audio)).standard_normal(len(audio)) * HISS
        return (audio + hiss).astype(np.float32)


def outlasting(milliseconds: float) -> float:
    """The share of hesitations that outlast so much silence, interpolated on logarithmic scales."""
    length = np.log(max(milliseconds, 1.0))
    return float(np.exp(np.interp(length, np.log(_MS), np.log(_OUTLAST))))


def pauses(whisper: Whisper, utterances: Sequence[Spoken]) -> list[Pause]:
    """Every utterance's end, and a hold after each third word."""
    return [pause for utterance in utterances for pause in _pauses(whisper, utterance)]


def _pauses(whisper: Whisper, utterance: Spoken) -> Iterator[Pause]:
    speaker, text, audio = utterance.speaker, utterance.text, utterance.audio
    words = text.split()
    for count, (start, end) in list(enumerate(_gaps(whisper, utterance), 1))[1:-1:WORDS_A_HOLD]:
        around = slice(max(round(start * RATE) - 800, 0), round(end * RATE) + 800)
        levels = np.convolve(np.square(audio[around]), np.ones(160) / 160, mode="same")
        before = audio[: around.start + int(np.argmin(levels))]
        said = " ".join(words[:count])
        ambiguous = count in utterance.possible_ends
        yield Pause(speaker, text, said, voiced(before, utterance.room_db), True, ambiguous)
    yield Pause(speaker, text, text, audio, False)


def _gaps(whisper: Whisper, utterance: Spoken) -> list[tuple[float, float]]:
    """The end of each word and the start of the next, in seconds."""
    rows = whisper.log_mel.centred(np.concatenate([utterance.audio, silence(2.0)]))
    ids = whisper.ids(f" {utterance.text}")
    frames = round(len(utterance.audio) / RATE * FRAMES_PER_SECOND)
    tokens = whisper.align(whisper.encode(rows), ids, frames)
    spans, first = [], 0
    for _, count in whisper.words(ids):
        spans.append((tokens[first].start, tokens[first + count - 1].end))
        first += count
    return [(before[1], after[0]) for before, after in pairwise(spans)]
