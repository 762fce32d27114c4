"""Names and products that the recogniser should know, without telling the decoder about them.

Hotwords in the decoder's prompt come out in the text when nobody said them. Here the decoder gets none:
where it wrote something that sounds like a hotword, the hotword is put in its place, and both texts are
aligned with the audio. The hotword stays if the audio makes it nearly as probable as what the decoder
preferred. What nobody said sounds like nothing that was written, or fails against the audio.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

ADVANTAGE = 6.0
"""Nats that a hotword is given. Right ones were at most 5 behind, wrong ones of the same sound 8 and more."""

_ALIKE = 0.7
_ALIKE_IN_OTHER_WORDS = 0.85  # where the number of words differs, a neighbour may have slipped in
_SHORTEST = 3  # letters of a key; shorter ones are like too much
_SOUNDS = (
    ("ph", "f"), ("gh", "g"), ("ck", "k"), ("qu", "kv"), ("q", "k"), ("x", "ks"), ("sch", "s"), ("ch", "k"),
    ("sh", "s"), ("th", "t"), ("c", "k"), ("z", "s"), ("w", "v"), ("j", "i"), ("y", "i"), ("h", ""),
    ("d", "t"), ("b", "p"), ("g", "k"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Alike:
    """Words `first` to `last` (not included) sound like this hotword, whose tokens are `ids`."""

    first: int
    last: int
    text: str
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Hotword:
    text: str
    key: str
    words: int
    ids: tuple[int, ...]
    alone: bool


class Hotwords:
    """The hotwords of one utterance, and which readings of them the audio has already turned down."""

    def __init__(
        self, hotwords: Sequence[str], ids: Callable[[str], list[int]], *, alone: Sequence[str] = ()
    ) -> None:
        """`alone`: phrases that count only where they are all that was said."""
        self._hotwords = [
            _Hotword(text, _sound(text), len(text.split()), tuple(ids(f" {text}")), wanted is alone)
            for wanted in (hotwords, alone)
            for text in dict.fromkeys(" ".join(hotword.split()) for hotword in wanted)
            if len(_sound(text)) >= _SHORTEST
        ]
        self._refused: set[tuple[str, str]] = set()

    def alike(self, words: Sequence[str]) -> list[Alike]:
        """Where a hotword may have been meant, from the last to the first, without overlaps."""
        found = sorted(
            ((ratio, alike) for hotword in self._hotwords for ratio, alike in self._matches(hotword, words)),
            key=lambda pair: -pair[0],
        )
        chosen: list[Alike] = []
        for _, alike in found:
            if all(alike.last <= other.first or alike.first >= other.last for other in chosen):
                chosen.append(alike)
        return sorted(chosen, key=lambda alike: -alike.first)

    def refuse(self, words: Sequence[str], alike: Alike) -> None:
        """The audio says otherwise: not to be asked again for these words."""
        self._refused.add((_said(words, alike), alike.text))

    def _matches(self, hotword: _Hotword, words: Sequence[str]) -> Iterator[tuple[float, Alike]]:
        for length in range(max(1, hotword.words - 1), hotword.words + 2):
            if hotword.alone and length != len(words):
                continue
            for first in range(len(words) - length + 1):
                alike = Alike(first, first + length, hotword.text, hotword.ids)
                said = _said(words, alike)
                if _letters(said) == _letters(hotword.text) or (said, hotword.text) in self._refused:
                    continue
                ratio = SequenceMatcher(None, _sound(said), hotword.key, autojunk=False).ratio()
                if ratio >= (_ALIKE if length == hotword.words else _ALIKE_IN_OTHER_WORDS):
                    yield ratio, alike


def _said(words: Sequence[str], alike: Alike) -> str:
    return " ".join(word.strip() for word in words[alike.first : alike.last])


def _letters(text: str) -> str:
    return "".join(character for character in text if character.isalnum())


def _sound(text: str) -> str:
    """A rough key of the sound: all vowels as one, voiced consonants as voiceless."""
    key = "".join(character for character in text.lower() if character.isalnum())
    for letters, sound in _SOUNDS:
        key = key.replace(letters, sound)
    return re.sub(r"(.)\1+", r"\1", re.sub(r"[aeiou]+", "a", key))
