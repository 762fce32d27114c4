"""Word timings for engines that give none: from how much of the text each word is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tts.speakable import Spoken
from tts.voice import Cancelled, VoiceChunk, WordTiming

CHARACTERS_PER_SECOND = 15.0
"""Usual speaking rate, word gaps included; only used while the unit's length is still unknown."""


def timed(
    chunks: Iterator[VoiceChunk], spoken: Spoken, sample_rate: int, cancelled: Cancelled
) -> Iterator[VoiceChunk]:
    """The unit's chunks with estimated word timings. The first sound does not wait; the last chunk has every
    word that is left."""
    timings = _Timings(spoken)
    sent = 0
    pending: VoiceChunk | None = None
    for chunk in chunks:
        if pending is not None:
            yield pending
        first = not sent
        sent += len(chunk.samples)
        pending = VoiceChunk(chunk.samples, timings.until(sent / sample_rate))
        if first:  # never the last one, which is the gap
            yield pending
            pending = None
    if pending is not None and not cancelled():
        yield VoiceChunk(pending.samples, pending.words + timings.finish(sent / sample_rate))


class _Timings:
    """Guesses when each written word is heard while audio arrives, and fits the rest when it has ended."""

    def __init__(self, spoken: Spoken) -> None:
        self._waiting: list[tuple[int, int, int]] = []  # written span, spoken characters
        for span in spoken.spans:
            size = span.end - span.start + 1
            if self._waiting and self._waiting[-1][0] == span.start_char:
                size += self._waiting.pop()[2]
            self._waiting.append((span.start_char, span.end_char, size))
        self._position = 0.0

    def until(self, seconds: float) -> tuple[WordTiming, ...]:
        """The next words that fit into the audio so far, at the usual rate."""
        timings: list[WordTiming] = []
        while self._waiting:
            start_char, end_char, size = self._waiting[0]
            end = self._position + size / CHARACTERS_PER_SECOND
            if end > seconds:
                break
            timings.append(WordTiming(start_char, end_char, self._position, end))
            self._position = end
            self._waiting.pop(0)
        return tuple(timings)

    def finish(self, seconds: float) -> tuple[WordTiming, ...]:
        """The other words, by their share of the audio that is left; `seconds` is the unit's length."""
        total = sum(size for *_, size in self._waiting)
        edges = [self._position]
        for *_, size in self._waiting:
            edges.append(edges[-1] + max(0.0, seconds - self._position) * size / total)
        spans = [(start_char, end_char) for start_char, end_char, _ in self._waiting]
        self._waiting = []
        return tuple(
            WordTiming(*span, start, min(end, seconds))
            for span, (start, end) in zip(spans, pairwise(edges), strict=True)
        )
