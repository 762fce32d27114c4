"""From spoken text to a Piper voice's phoneme identifiers, knowing which word each belongs to."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tts.espeak import Espeak
from tts.segment import Segment, WordSpan

PAD, BEGIN, END = "_", "^", "$"
MOST_PHONEMES = 400
"""The network was trained on sentences; longer text is split between clauses."""
LONGEST_CLAUSE, LONGEST_WORD = 200, 60
"""Characters given to espeak-ng as one line, and of one word."""
MARK = re.compile(r"(?<!\.[^\W\d_])[,.;:!?…]+(?=[\s\"'”’)\]]|$)|\.(?=\W*$)|[—–]")
"""Where a clause ends: not behind "a.m.", unless the text does."""
SPOKEN_AS = {"…": ".", "—": ",", "–": ","}
SENTENCE_MARKS = ".!?"


@dataclass(frozen=True, slots=True)
class _Clause:
    words: list[tuple[int, str]]  # place in the spoken text, the word
    mark: str


class PiperPhonemes:
    """A voice's alphabet over espeak-ng's phonemes; safe across threads."""

    def __init__(self, language: str, ids: Mapping[str, Sequence[int]]) -> None:
        """`language` is an espeak-ng voice, `ids` the voice's `phoneme_id_map`. Raises EspeakError."""
        self._espeak = Espeak(language)
        self._ids = ids

    def segments(self, spoken: str) -> list[Segment]:
        """The sentences of `spoken`, none longer than the network takes, those without a word left out."""
        clauses = list(_clauses(spoken))
        lines = self._espeak.phonemes([" ".join(word for _, word in clause.words) for clause in clauses])
        segments: list[Segment] = []
        open_segment: Segment | None = None
        for clause, phonemes in zip(clauses, lines, strict=True):
            known = "".join(c for c in unicodedata.normalize("NFD", phonemes) if c in self._ids)
            if not known.strip():
                continue
            if open_segment is None:
                open_segment = Segment(ids=[*self._ids[BEGIN], *self._ids[PAD]])
                segments.append(open_segment)
            else:
                self._append(open_segment, " ")
            self._append_clause(open_segment, clause, known)
            full = len(open_segment.ids) > 2 * MOST_PHONEMES
            if full or (clause.mark and clause.mark in SENTENCE_MARKS):
                open_segment = None
        for segment in segments:
            segment.ids += self._ids[END]
        return segments

    def _append_clause(self, segment: Segment, clause: _Clause, phonemes: str) -> None:
        groups = phonemes.split()
        bounds = []
        for index, group in enumerate(groups):
            if index:
                self._append(segment, " ")
            first = len(segment.ids)
            self._append(segment, group)
            bounds.append((first, len(segment.ids)))
        segment.words += _spans(clause.words, bounds)
        if clause.mark:
            self._append(segment, clause.mark)
        segment.ending = clause.mark

    def _append(self, segment: Segment, phonemes: str) -> None:
        for phoneme in phonemes:
            segment.ids += [*self._ids.get(phoneme, ()), *self._ids[PAD]]


def _clauses(spoken: str) -> Iterator[_Clause]:
    begin = 0
    for match in [*MARK.finditer(spoken), None]:
        end = match.start() if match else len(spoken)
        mark = SPOKEN_AS.get(match.group()[0], match.group()[0]) if match else ""
        parts = list(_lines(list(_words(spoken, begin, end))))
        for index, words in enumerate(parts):
            yield _Clause(words, mark if index + 1 == len(parts) else "")
        begin = match.end() if match else end


def _words(spoken: str, begin: int, end: int) -> Iterator[tuple[int, str]]:
    sayable = "".join(c if c.isalnum() or c in "'’-." else " " for c in spoken[begin:end])
    for match in re.finditer(r"\S+", sayable):
        word = match.group().strip(".")
        if any(map(str.isalnum, word)):
            yield begin + match.start(), word[:LONGEST_WORD]


def _lines(words: list[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    line: list[tuple[int, str]] = []
    size = 0
    for word in words:
        if line and size + len(word[1]) > LONGEST_CLAUSE:
            yield line
            line, size = [], 0
        line.append(word)
        size += len(word[1]) + 1
    if line:
        yield line


def _spans(words: list[tuple[int, str]], bounds: list[tuple[int, int]]) -> Iterator[WordSpan]:
    """Words beside their phonemes: one to one where the counts agree, else by their share of the letters.

    espeak-ng joins some words ("of the") and spells out others, and does not say where.
    """
    if len(words) == len(bounds):
        yield from (WordSpan(place, *bound) for (place, _), bound in zip(words, bounds, strict=True))
        return
    begin, end = bounds[0][0], bounds[-1][1]
    letters = sum(len(word) for _, word in words)
    edges = [begin]
    seen = 0
    for _, word in words:
        seen += len(word)
        edges.append(begin + round((end - begin) * seen / letters))
    for (place, _), (first, last) in zip(words, pairwise(edges), strict=True):
        if last > first:
            yield WordSpan(place, first, last)
