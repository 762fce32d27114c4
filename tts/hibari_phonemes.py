"""From spoken text to the embedded voice's phonemes, knowing which word each phoneme belongs to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import hibari
from hibari.g2p import G2P

from tts.segment import Segment, WordSpan

PAD = 0
"""Starts and ends every segment."""
MOST_PHONEMES = 400
"""The network was trained on sentences; longer text is split."""
SENTENCE_ENDS = ".!?…"
CLAUSE_ENDS = ",;:—"


@dataclass(frozen=True, slots=True)
class _Token:
    place: int  # in the spoken text
    phonemes: str
    spaced: bool  # white space follows


class HibariPhonemes:
    """Grapheme to phoneme conversion by the voice's own lexicon and network; safe across threads."""

    def __init__(self, *, british: bool) -> None:
        self._convert = G2P(british=british)
        self._convert.oov("ready")  # loaded on first use, which must not be two threads' at once
        assets = Path(hibari.__file__).parent / "assets"
        self._ids: dict[str, int] = json.loads((assets / "vocab.json").read_text(encoding="utf-8"))

    def segments(self, spoken: str) -> list[Segment]:
        """The sentences of `spoken`, none longer than the network takes, those without a word left out."""
        segments: list[Segment] = []
        tokens: list[_Token] = []
        for token in self._tokens(spoken):
            tokens.append(token)
            if token.phonemes[-1:] in SENTENCE_ENDS and token.phonemes:
                segments += self._within_limit(tokens)
                tokens = []
        segments += self._within_limit(tokens)
        return [segment for segment in segments if segment.words]

    def _tokens(self, spoken: str) -> list[_Token]:
        tokens = []
        position = 0
        for token in self._convert.phonemize_tokens(self._convert.tokenize(spoken)):
            start = spoken.find(token.text, position)
            if start < 0:  # the converter rewrote it; its place is where the last one ended
                start = position
            position = min(len(spoken), start + len(token.text))
            tokens.append(_Token(start, self._known(token.phonemes or ""), bool(token.whitespace)))
        return tokens

    def _known(self, phonemes: str) -> str:
        """At most what one segment holds, in the network's alphabet."""
        return "".join(c for c in phonemes if c in self._ids)[: MOST_PHONEMES // 2]

    def _within_limit(self, tokens: list[_Token]) -> list[Segment]:
        """`tokens` as segments, split behind the last clause that fits or, without one, the last word."""
        segments = []
        while tokens:
            size = clause = count = 0
            for index, token in enumerate(tokens):
                size += len(token.phonemes) + token.spaced
                if size > MOST_PHONEMES:
                    break
                count = index + 1
                if token.phonemes and token.phonemes[-1] in CLAUSE_ENDS:
                    clause = count
            if count < len(tokens) and clause:
                count = clause
            segments.append(self._segment(tokens[:count]))
            tokens = tokens[count:]
        return segments

    def _segment(self, tokens: list[_Token]) -> Segment:
        segment = Segment(ids=[PAD])
        for index, token in enumerate(tokens):
            first = len(segment.ids)
            segment.ids += [self._ids[c] for c in token.phonemes]
            if any(c.isalpha() for c in token.phonemes):
                last = first + len(token.phonemes.rstrip(SENTENCE_ENDS + CLAUSE_ENDS))
                segment.words.append(WordSpan(token.place, first, last))
            if token.spaced and index + 1 < len(tokens):
                segment.ids.append(self._ids[" "])
        segment.ids.append(PAD)
        segment.ending = "".join(token.phonemes for token in tokens)[-1:]
        return segment
