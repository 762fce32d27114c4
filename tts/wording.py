"""A unit as it will be said, word by word beside what was written."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tts.voice import WordTiming


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """One word to say: its span in the spoken text and the span of the written word it comes from."""

    start: int
    end: int
    start_char: int
    end_char: int


@dataclass(frozen=True, slots=True)
class Wording:
    text: str
    words: tuple[SpokenWord, ...]

    def timings(self, spoken: Iterable[tuple[int, float, float]]) -> list[WordTiming]:
        """When the written words are heard, from each spoken word's place in `text` and its times in seconds.

        Spoken words that come from one written word become one timing; those between words become none.
        """
        starts = [word.start for word in self.words]
        timings: list[WordTiming] = []
        for place, start, end in spoken:
            index = bisect_right(starts, place) - 1
            if index < 0:
                continue
            span = (self.words[index].start_char, self.words[index].end_char)
            if timings and (timings[-1].start_char, timings[-1].end_char) == span:
                timings[-1] = replace(timings[-1], end=end)
            else:
                timings.append(WordTiming(*span, start, end))
        return timings


def wording(text: str) -> Wording:
    words = tuple(SpokenWord(*m.span(), *m.span()) for m in re.finditer(r"\S+", text))
    return Wording(text, words)
