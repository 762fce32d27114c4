"""Recordings with controlled pauses: a caller who hesitates within a sentence, and one who has finished.

A hold is a pause put into the gap between two words of a whole sentence, so that the melody before it is
that of a sentence that goes on; an end is a sentence's true end. Gaps are found by aligning the words with
the audio. How long the holds last follows what is known of hesitations in spoken English: 55.6 % outlast 300
ms of silence, 21.7 % 600, 10 % 1,000 and 5 % 1,600 (the voice-activity row of LiveKit's eot-bench).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from asr.whisper import FRAMES_PER_SECOND, Whisper
from bench.questions import RATE
from bench.utterances import Spoken, silence
from pipeline.events import Audio

HISS = 10 ** (-62 / 20)  # a line is never quite silent
_SECONDS = (0.1, 0.3, 0.6, 1.0, 1.6, 2.6)
_OUTLAST = (1.0, 0.556, 0.217, 0.10, 0.05, 0.005)


@dataclass(frozen=True, slots=True)
class Pause:
    """`audio`: what was said before it, ending with the voice. `seconds` is None for the end of a turn."""

    speaker: str
    sentence: str
    audio: Audio
    seconds: float | None

    def after(self, seconds: float) -> Audio:
        """The turn's audio after so much of the pause, with the line's hiss."""
        audio = np.concatenate([silence(0.3), self.audio, silence(seconds)])
        hiss = np.random.default_rng(len(audio)).standard_normal(len(audio)) * HISS
        return (audio + hiss).astype(np.float32)


def pauses(whisper: Whisper, utterances: Sequence[Spoken]) -> list[Pause]:
    """Every utterance's end, and one hold for each five words or so."""
    random = np.random.default_rng(11)
    held = [(utterance, cut) for utterance in utterances for cut in _cuts(whisper, utterance, random)]
    ranks = random.permutation(len(held))
    holds = [
        Pause(u.speaker, u.text, u.audio[:cut], _seconds((rank + 0.5) / len(held)))
        for (u, cut), rank in zip(held, ranks, strict=True)
    ]
    return holds + [Pause(u.speaker, u.text, u.audio, None) for u in utterances]


def _seconds(share: float) -> float:
    """The length that this share of the holds outlasts, interpolated on a logarithmic scale."""
    return float(np.exp(np.interp(-share, [-s for s in _OUTLAST], np.log(_SECONDS))))


def _cuts(whisper: Whisper, utterance: Spoken, random: np.random.Generator) -> Iterator[int]:
    """Samples at which to put a pause: the quietest places between two words away from the ends."""
    gaps = _gaps(whisper, utterance)[1:-1]
    if not gaps:
        return
    for gap in random.choice(len(gaps), size=min(len(gaps), max(1, len(gaps) // 5)), replace=False):
        start, end = (round(seconds * RATE) for seconds in gaps[gap])
        around = np.arange(max(start - 800, 0), min(end + 800, len(utterance.audio)))
        levels = np.convolve(np.square(utterance.audio), np.ones(160) / 160, mode="same")
        yield int(around[np.argmin(levels[around])])


def _gaps(whisper: Whisper, utterance: Spoken) -> list[tuple[float, float]]:
    """The end of each word and the start of the next, in seconds."""
    rows = whisper.log_mel.centred(np.concatenate([utterance.audio, silence(2.0)]))
    ids = whisper.ids(f" {utterance.text}")
    frames = round(len(utterance.audio) / RATE * FRAMES_PER_SECOND)
    tokens = whisper.align(whisper.encode(rows), ids, frames)
    ends, first = [], 0
    for _, count in whisper.words(ids):
        ends.append((tokens[first].start, tokens[first + count - 1].end))
        first += count
    return [(before[1], after[0]) for before, after in pairwise(ends)]
