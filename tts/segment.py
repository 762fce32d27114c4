"""What a network says at once: phonemes, and the words that they belong to."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tts.speakable import Spoken
from tts.voice import WordTiming


@dataclass(frozen=True, slots=True)
class WordSpan:
    """A word's place in the spoken text and its phonemes, a half-open range of the segment's identifiers."""

    place: int
    first: int
    last: int


@dataclass(slots=True)
class Segment:
    """One sentence, or as much of one as fits the network."""

    ids: list[int] = field(default_factory=list)
    words: list[WordSpan] = field(default_factory=list)
    ending: str = ""
    """The mark at its end, if there is one."""

    def timings(
        self, seconds: Iterable[float], spoken: Spoken, *, longest_last: float = float("inf")
    ) -> list[WordTiming]:
        """The written words' times in the untrimmed audio, `seconds` being each identifier's duration.

        Spoken words that come from one written word become one timing. A word's last phoneme counts for at
        most `longest_last` seconds, for networks that give it the pause which follows.
        """
        begins = [0.0]
        for duration in seconds:
            begins.append(begins[-1] + float(duration))
        timings: list[WordTiming] = []
        for word in self.words:
            span = spoken.spans[_span_at(spoken, word.place)]
            start = begins[word.first]
            end = min(begins[word.last], begins[word.last - 1] + longest_last)
            if timings and timings[-1].start_char == span.start_char:
                timings[-1] = replace(timings[-1], end=end)
            else:
                timings.append(WordTiming(span.start_char, span.end_char, start, end))
        return timings


def _span_at(spoken: Spoken, place: int) -> int:
    """Which span a place in the spoken text belongs to: the one that begins there or before."""
    return max(0, bisect_right(spoken.spans, place, key=lambda span: span.start) - 1)
