"""From what a language model writes to what a voice says.

Markup, code blocks, emoji and control characters go; numbers, money, dates, times, addresses, codes and
abbreviations become words; what is left is plain words and punctuation. Text that is plain already stays as
it is, so the function is idempotent, and every spoken word knows the written characters it stands for.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from tts.text.abbreviations import ABBREVIATIONS
from tts.text.codes import CODES, VERSIONS
from tts.text.contact import CONTACT
from tts.text.counts import FIGURES, NUMBERS
from tts.text.dates import DATES, TIMES
from tts.text.lexicon import Lexicon, lexicon
from tts.text.markup import plain
from tts.text.money import MONEY
from tts.text.phones import PHONES
from tts.text.rules import Rule, rule, verbalise
from tts.text.symbols import SYMBOLS
from tts.text.tracked import Tracked
from tts.text.units import UNITS


@dataclass(frozen=True, slots=True)
class Span:
    """One spoken word, its marks included, and the range of the written text it says, marks left out.

    Words that come from the same writing (``$3.50``) have the same range; other ranges do not overlap.
    """

    start: int
    end: int
    start_char: int
    end_char: int


@dataclass(frozen=True, slots=True)
class Spoken:
    """What to say, and for each word of it, in order, what was written. Empty where nothing can be said."""

    text: str
    spans: tuple[Span, ...] = ()


_RULES: list[Rule] = [
    *CONTACT,
    *DATES,
    *PHONES,
    *VERSIONS,
    *TIMES,
    *MONEY,
    *ABBREVIATIONS,
    *UNITS,
    *FIGURES,
    *CODES,
    *NUMBERS,
    *SYMBOLS,
]


def speakable(text: str, *, pronunciations: Mapping[str, str] | None = None, language: str = "en") -> Spoken:
    """The words for ``text``, one or more sentences as a model wrote them.

    ``pronunciations`` maps words or phrases to how they are to be said, before any other rule; a key in lower
    case matches any case, another only its own. ``language`` is an ISO 639-1 code: English is covered fully;
    Spanish, French and German have numbers, money, dates, times and addresses. Takes time linear in the text,
    never fails on one, and raises ValueError for a language it has no words for.
    """
    words = lexicon(language)
    spoken = _once(text, _rules(words.code, tuple((pronunciations or {}).items())), words)
    for _ in range(_MOST_PASSES):
        again = _once(spoken.text, _rules(words.code, ()), words)
        if again.text == spoken.text:
            break
        spoken = _composed(again, spoken)
    said = spoken.text
    if not any(map(str.isalnum, said)):
        return Spoken("")
    return Spoken(said, tuple(_spans(spoken, said)))


def _once(text: str, rules: list[Rule], words: Lexicon) -> Tracked:
    return _tidy(verbalise(plain(text), rules, words))


def _composed(later: Tracked, earlier: Tracked) -> Tracked:
    """What a second pass made, with places in the text that the first pass read."""
    out = Tracked()
    for character, start, end in zip(later.characters, later.starts, later.ends, strict=True):
        last = max(start, end - 1)
        out.add(
            character, earlier.starts[min(start, len(earlier) - 1)], earlier.ends[min(last, len(earlier) - 1)]
        )
    return out


@lru_cache(maxsize=64)
def _rules(code: str, pronunciations: tuple[tuple[str, str], ...]) -> list[Rule]:
    rules = [rule for rule in _RULES if code == "en" or not rule.english]
    return [_pronounced(pronunciations), *rules] if pronunciations else rules


def _pronounced(pronunciations: tuple[tuple[str, str], ...]) -> Rule:
    """A rule that says the dictionary's words as it has them; the longest key wins."""
    said = dict(pronunciations)
    keys = sorted((key for key in said if key.strip()), key=len, reverse=True)
    alternatives = "|".join(f"(?i:{re.escape(key)})" if key.islower() else re.escape(key) for key in keys)

    def say(match: re.Match[str], _: Lexicon) -> str:
        return said.get(match[0], said.get(match[0].lower(), match[0]))

    return rule(rf"(?:{alternatives})(?![^\W_])", say)


_MOST_PASSES = 4
"""One pass is enough for what people write; another only for marks run together so that words meet anew."""
_ENDS = frozenset(".!?…。！？।؟")
_CLAUSES = frozenset(",;:—，；：、،؛")


def _tidy(spoken: Tracked) -> Tracked:
    """One space between words, none before a mark, the strongest mark where several met, no mark first."""
    out = Tracked()
    for place, character in enumerate(spoken.characters):
        if character.isspace():
            if out and out.last != " ":
                out.copy(spoken, place, place + 1)
                out.characters[-1] = " "
            continue
        if (character in _ENDS or character in _CLAUSES) and not _takes_mark(out, character):
            continue
        out.copy(spoken, place, place + 1)
    while out.last in (" ", ",", ";", ":", "—") and out:
        out.pop()
    return out


def _takes_mark(out: Tracked, mark: str) -> bool:
    """Make room for a mark; whether it is to be written."""
    while out.last == " " and mark != "—":
        out.pop()
    if not out:
        return False
    last = out.last if out.last != " " else out.characters[-2]
    if last in _CLAUSES and mark in _ENDS:
        out.pop()
        return bool(out)
    if last in _CLAUSES:
        return False
    if "".join(out.characters[-3:]) == ".m.":  # "ten a.m., please": the stop is no end
        return mark != "."
    return not (last in _ENDS and mark in _CLAUSES)


def _spans(spoken: Tracked, said: str) -> Iterator[Span]:
    """The spans of the words. Two of them have the same written range, or ranges that do not overlap."""
    start_char = end_char = 0
    for word in re.finditer(r"\S+", said):
        places = [place for place in range(*word.span()) if said[place].isalnum()]
        if not places:
            continue
        start = spoken.starts[places[0]]
        if start >= end_char:
            start_char, end_char = start, max(spoken.ends[place] for place in places)
        yield Span(*word.span(), start_char, end_char)
