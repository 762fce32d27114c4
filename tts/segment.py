"""What a network says at once: phonemes, and the words that they belong to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tts.voice import WordTiming
from tts.wording import Wording


@dataclass(frozen=True, slots=True)
class WordSpan:
    """A word's place in the spoken text and its phonemes, a half-open range of the segment's identifiers."""

    start_char: int
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
        self, seconds: Iterable[float], said: Wording, *, longest_last: float = float("inf")
    ) -> list[WordTiming]:
        """The written words' times in the untrimmed audio, `seconds` being each identifier's duration.

        A word's last phoneme counts for at most `longest_last` seconds, for networks that give it the pause
        which follows.
        """
        begins = [0.0]
        for duration in seconds:
            begins.append(begins[-1] + float(duration))
        return said.timings(
            (
                word.start_char,
                begins[word.first],
                min(begins[word.last], begins[word.last - 1] + longest_last),
            )
            for word in self.words
        )
