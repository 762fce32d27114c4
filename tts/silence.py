"""Silence around a unit of speech: none before the first sound, a chosen gap after the last.

What an engine puts in front of the first sound is latency that the caller hears as such, and what it leaves
at the end is a pause that nobody chose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from tts.voice import Cancelled, Samples, VoiceChunk, WordTiming

AUDIBLE = 0.006
"""Amplitude (-44 dBFS) above which a sample counts as sound."""
ONSET_SECONDS = 0.008
"""Kept in front of the first sound, so that a soft consonant is not cut."""
DECAY_SECONDS = 0.02
"""Kept behind the last sound in any case, so that it dies away."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a unit as an engine makes it, silence and all, and the gap in seconds that follows it."""

    chunks: Iterator[VoiceChunk]
    gap: float


def join(pieces: Iterable[Piece], sample_rate: int, cancelled: Cancelled) -> Iterator[VoiceChunk]:
    """One unit out of pieces, each trimmed; word timings count from the unit's first sample."""
    begin = 0.0
    for piece in pieces:
        made = 0
        for chunk in trim(piece.chunks, sample_rate, piece.gap):
            if cancelled():
                return
            made += len(chunk.samples)
            yield VoiceChunk(chunk.samples, tuple(_later(word, begin) for word in chunk.words))
        begin += made / sample_rate


def trim(chunks: Iterable[VoiceChunk], sample_rate: int, gap: float) -> Iterator[VoiceChunk]:
    """The unit without its leading silence, ending `gap` seconds after its last sound.

    Silence is held back until sound follows it, so a chunk comes out when it has been heard to matter. Word
    timings move with the audio. A unit without sound yields nothing.
    """
    trimmer = _Trimmer(sample_rate, max(gap, DECAY_SECONDS))
    for chunk in chunks:
        if out := trimmer.push(chunk):
            yield out
    if last := trimmer.finish():
        yield last


class _Trimmer:
    def __init__(self, sample_rate: int, gap: float) -> None:
        self.sample_rate = sample_rate
        self.gap = gap
        self.lead: int | None = None  # samples dropped before the unit; None until the first sound
        self.taken = 0  # samples given to this trimmer
        self.released = 0  # samples given out
        self.held: Samples = np.zeros(0, np.float32)
        self.words: tuple[WordTiming, ...] = ()
        self.last_word_end = 0.0

    def push(self, chunk: VoiceChunk) -> VoiceChunk | None:
        self.taken += len(chunk.samples)
        self.words += chunk.words
        self.held = np.concatenate([self.held, chunk.samples])
        loud = np.flatnonzero(np.abs(self.held) > AUDIBLE)
        if not len(loud):
            if self.lead is None:
                self.held = self.held[-self._samples(ONSET_SECONDS) :]
            return None
        if self.lead is None:
            start = max(0, int(loud[0]) - self._samples(ONSET_SECONDS))
            self.lead = self.taken - len(self.held) + start
            self.held, loud = self.held[start:], loud - start
        return self._release(int(loud[-1]) + 1)

    def finish(self) -> VoiceChunk | None:
        if self.lead is None:
            return None
        wanted = max(self._samples(self.gap), self._samples(self._last_end()) - self.released)
        missing = max(0, wanted - len(self.held))
        self.held = np.concatenate([self.held, np.zeros(missing, np.float32)])
        return self._release(wanted, every_word=True)

    def _release(self, count: int, *, every_word: bool = False) -> VoiceChunk:
        samples, self.held = self.held[:count], self.held[count:]
        self.released += count
        end = self.released / self.sample_rate
        moved = [self._moved(word) for word in self.words]
        ready = len(moved) if every_word else sum(word.start < end for word in moved)
        self.words = self.words[ready:]
        self.last_word_end = max([self.last_word_end, *(word.end for word in moved[:ready])])
        return VoiceChunk(samples, tuple(moved[:ready]))

    def _last_end(self) -> float:
        return max([self.last_word_end, *(self._moved(word).end for word in self.words)])

    def _moved(self, word: WordTiming) -> WordTiming:
        return _later(word, -(self.lead or 0) / self.sample_rate)

    def _samples(self, seconds: float) -> int:
        return round(seconds * self.sample_rate)


def _later(word: WordTiming, by: float) -> WordTiming:
    return replace(word, start=max(0.0, word.start + by), end=max(0.0, word.end + by))
