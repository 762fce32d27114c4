"""A voice whose every 20 ms are recognisable, so that what a caller heard has its place in the reply."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tests.pipeline.fakes import CHARACTER_SECONDS, SlowReader
from tts.voice import VoiceChunk
from web.phone.encodings import MULAW
from web.phone.simulator.call import PlayedFrame

RATE = 8000
_FRAME = 160


class NoiseReader(SlowReader):
    """Says everything in noise of its own; keeps the mu-law bytes of each text said."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes: dict[str, bytes] = {}

    def synthesise(self, text: str, *, cancelled: Callable[[], bool]) -> Iterator[VoiceChunk]:
        total = round(len(text) * CHARACTER_SECONDS * RATE)
        seed = sum(ord(character) * 31**place for place, character in enumerate(text)) % 2**32
        noise = np.random.default_rng(seed).uniform(-0.5, 0.5, total).astype(np.float32)
        self.bytes[text] = MULAW.encode(noise)
        start = 0
        for chunk in super().synthesise(text, cancelled=cancelled):
            yield VoiceChunk(noise[start : start + chunk.samples.size], chunk.words)
            start += chunk.samples.size


@dataclass(frozen=True, slots=True)
class Heard:
    """Of one reply: which samples were played how often, by words."""

    times: np.ndarray
    words: list[tuple[str, int]]
    """Each word with how many times at least half of it was heard."""


def what_was_heard(voice: NoiseReader, played: list[PlayedFrame], sentences: list[str]) -> Heard:
    """Place every played frame in the reply. A frame that is nowhere in it fails the test."""
    whole = b"".join(voice.bytes[sentence] for sentence in sentences)
    times = np.zeros(len(whole), int)
    for frame in played:
        kept = frame.payload
        if kept not in whole:  # the last frame of a reply is filled up with silence
            kept = kept.rstrip(MULAW.silence)
        position = whole.find(kept)
        assert position >= 0, f"the frame at {frame.at:.2f} s is not of this reply"
        times[position : position + len(kept)] += 1
    return Heard(times, [(word, _times_heard(times, *span)) for word, *span in _spans(sentences)])


def _spans(sentences: list[str]) -> Iterator[tuple[str, int, int]]:
    at = 0
    for sentence in sentences:
        for word in re.finditer(r"\S+", sentence):
            yield word[0], at + _sample(word.start()), at + _sample(word.end())
        at += _sample(len(sentence))


def _sample(character: int) -> int:
    return round(character * CHARACTER_SECONDS * RATE)


def _times_heard(times: np.ndarray, start: int, end: int) -> int:
    """How often at least half of the word was heard."""
    return int(np.median(times[start:end]))
