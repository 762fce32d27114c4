"""A streaming sentence boundary finder that waits for at most one character.

Text goes in as it is generated, in pieces of any size; sentences come out, each with the white space behind
it, so that joined they are the text again, exactly. Every character is looked at once, at a constant cost.
The sentences are a function of the text alone: how it was cut into pieces changes nothing.

A mark ends a sentence when the word before it and the first character after the white space say so (see
:mod:`llm.sentences.rules`) and no quote, bracket, code or link is open (:mod:`llm.sentences.spans`). A blank
line ends one at once. What has no white space inside (``3.50``, ``v1.2``, ``a@b.com``, ``/etc/x.conf``) is a
word and never cut.
"""

import re
import unicodedata
from dataclasses import dataclass

from llm.sentences.abbreviations import abbreviations
from llm.sentences.rules import (
    ALWAYS,
    MARKS,
    NEVER,
    SHOUTS,
    STOPS,
    WIDE_MARKS,
    BoundaryRule,
    Words,
    after_closer,
    after_ellipsis,
    after_shout,
    after_stop,
    ends_without_space,
    is_list_marker,
)
from llm.sentences.spans import CLOSERS, OpenSpans

_CLAUSE_MARKS = frozenset(",;:—–،؛，、；：")
_TOUCHING_CLAUSE_MARKS = frozenset("—，、；：")
_PLAIN = re.compile("[A-Za-z0-9]+")
_WORD_LIMIT = 32
"""Characters of a word that are kept: no abbreviation or name that matters is longer."""
_CUT_LEFT = "([{\"'“‘«*_¿¡<"
_CUT_RIGHT = ")]}\"'”’»*_"
_ELIDED = frozenset({"em", "til", "tis", "twas", "cause", "bout", "round", "n", "s", "cuz", "kay"})


@dataclass(frozen=True, slots=True)
class SentencePolicy:
    """How units end.

    ``first_clause`` lets the first unit end behind a comma, colon, semicolon or dash, once it has
    ``first_min_chars`` characters and ``first_min_words`` words: the voice starts sooner, at some cost in
    prosody. ``first_at_once`` lets the first unit end at ``!`` or ``?`` without waiting for the character
    after it; the white space, and any further mark of a ``?!``, then leads the second unit. ``max_chars``
    bounds every unit but a fenced code block: a longer one ends behind its last clause, else between its last
    two words, else where it is.
    """

    language: str = "en"
    first_clause: bool = False
    first_min_chars: int = 12
    first_min_words: int = 3
    first_at_once: bool = False
    max_chars: int = 300

    def __post_init__(self) -> None:
        if self.max_chars < 16:
            raise ValueError(f"max_chars must be at least 16, not {self.max_chars}")
        if self.first_min_chars < 1 or self.first_min_words < 1:
            raise ValueError("first_min_chars and first_min_words must be at least 1")


WHOLE_SENTENCES = SentencePolicy()


@dataclass(slots=True)
class _Mark:
    """A run of marks, with what closed behind it, that may end a sentence."""

    words: Words
    text: str
    spaced: bool
    closed: bool = False


class SentenceStream:
    """The sentences of one reply. Not thread-safe; use a new one for every reply."""

    def __init__(self, policy: SentencePolicy = WHOLE_SENTENCES) -> None:
        self._policy = policy
        self._table = abbreviations(policy.language)
        self._spans = OpenSpans()
        self._ready: list[str] = []
        self._unit: list[str] = []  # the characters of the unfinished unit
        self._start = 0  # where it begins in the whole text
        self._first = True
        self._word_count = 0
        self._word = ""  # the word being read, its first characters
        self._words_before = ("", "")  # the two words before it
        self._opens = True  # it is the first of its line or unit, or follows a colon
        self._block = False  # its line is a heading, a list item or a table row
        self._gap = ""  # the white space since the last word, "\n" kept
        self._last = ""  # the last character that is not white space
        self._mark: _Mark | None = None
        self._clause_end = self._space_end = self._any_space_end = 0

    def push(self, text: str) -> list[str]:
        """Take the next piece of the text; the units that it completed, in order, often none."""
        at = 0
        while at < len(text):
            character = text[at]
            self._spans.settle(character)
            if character.isspace():
                self._take_space(character)
            else:
                self._take(character)
            at += 1
            if character.isalnum() and self._word:
                at = self._take_plain(text, at)
            if len(self._unit) >= self._policy.max_chars and not self._spans.fenced:
                self._cut_at(self._best_cut())
        return self._take_ready()

    def _take_plain(self, text: str, at: int) -> int:
        """Take at once the letters and digits that only go on with a word; where they end.

        Nothing is decided at them, so this does what :meth:`_take` would do for each.
        """
        room = self._policy.max_chars - len(self._unit)
        if room <= 0:
            return at
        run = _PLAIN.match(text, at, at + room)
        if run is None:
            return at
        plain = run.group()
        self._unit += plain
        self._spans.skip(plain)
        if len(self._word) < _WORD_LIMIT:
            self._word = (self._word + plain)[:_WORD_LIMIT]
        self._last = plain[-1]
        return run.end()

    def stall(self) -> list[str]:
        """No text came for a while: hand over the sentence that only waits for the next character.

        An unfinished sentence stays; after this, the white space that follows leads the next unit.
        """
        mark = self._mark
        if (
            mark
            and not self._spans.inside()
            and self._rule(mark).sure
            and not self._may_be_inside_a_word(mark)
        ):
            self._cut_at(self._start + len(self._unit))
        return self._take_ready()

    def flush(self) -> list[str]:
        """The rest of the text as it stands: at the end of a reply, or when the voice would fall silent."""
        if self._unit:
            self._cut_at(self._start + len(self._unit))
        return self._take_ready()

    def _take_ready(self) -> list[str]:
        ready, self._ready = self._ready, []
        return ready

    def _take_space(self, character: str) -> None:
        if self._word:
            self._end_word()
        self._unit.append(character)
        self._spans.feed(character)
        if character != "\n":
            self._gap = self._gap or " "
            return
        blank_line = "\n" in self._gap
        self._gap += "\n"
        if blank_line:
            self._gap = "\n"
            self._spans.blank_line()
            if self._last and not self._spans.fenced:
                self._cut_at(self._start + len(self._unit))

    def _end_word(self) -> None:
        word = self._word
        if word[0] in "'’" and (word[1:2].isdigit() or word[1:].strip(".,!?;:").lower() in _ELIDED):
            self._spans.forget_apostrophe()
        self._word_count += 1
        self._words_before = (word, self._words_before[0])
        self._block = self._block or (self._opens and is_list_marker(word))
        self._opens = word[-1] == ":" or (self._opens and not any(map(str.isalnum, word)))
        self._word = ""

    def _take(self, character: str) -> None:
        here = self._start + len(self._unit)
        if self._ends_before(character):
            self._cut_at(here)
        elif self._gap or self._last in _TOUCHING_CLAUSE_MARKS:
            self._note_places(character, here)
        if "\n" in self._gap or not self._last:
            self._opens = True
            self._block = character in "#|>-*•+" or character.isdigit()
        self._unit.append(character)
        self._spans.feed(character)
        self._follow_mark(character)
        if len(self._word) < _WORD_LIMIT:
            self._word += character
        self._gap = ""
        self._last = character
        if self._policy.first_at_once and self._first and character in "!?" and self._shout_is_plain():
            self._cut_at(self._start + len(self._unit))

    def _ends_before(self, character: str) -> bool:
        """Whether the unit ends before this character, which is not white space."""
        mark = self._mark
        if not self._last or self._spans.inside():
            return False
        if mark is None:
            return "\n" in self._gap and (self._block or not character.islower())
        if character in MARKS:
            return False
        if not self._gap:
            if mark.text[-1] in WIDE_MARKS:
                return not self._closes(character)
            return not mark.closed and ends_without_space(mark.words, mark.text, character, self._table)
        rule = self._rule(mark)
        if "\n" in self._gap:
            return rule is not NEVER
        return rule.allows(character)

    def _rule(self, mark: _Mark) -> BoundaryRule:
        if set(mark.text) <= STOPS:
            dots = len(mark.text) + 2 * mark.text.count("…")
            rule = after_stop(mark.words, self._table) if dots == 1 else after_ellipsis(dots, mark.spaced)
        elif len(mark.text) == 1:
            rule = after_shout(mark.words)
        else:
            rule = ALWAYS
        return after_closer(rule) if mark.closed else rule

    def _may_be_inside_a_word(self, mark: _Mark) -> bool:
        """``$3.`` may become ``$3.50``: without a space behind it only a plain word's stop is safe."""
        return not self._gap and mark.text == "." and not mark.words.word.isalpha()

    def _follow_mark(self, character: str) -> None:
        mark = self._mark
        if character in MARKS and not self._spans.hard:
            if mark is None or (self._gap and character not in STOPS):
                word = self._word.lstrip(_CUT_LEFT).rstrip(_CUT_RIGHT)
                for dash in "—–":
                    word = word.rpartition(dash)[2]
                before, before_that = self._words_before
                words = Words(word, before, before_that, self._opens)
                self._mark = _Mark(words, character, spaced=not self._word)
            elif len(mark.text) < 8:
                mark.text += character
        elif mark and not self._gap and self._closes(character):
            mark.closed = mark.closed or character in CLOSERS
        else:
            self._mark = None

    @staticmethod
    def _closes(character: str) -> bool:
        """Whether a character that touches a mark still belongs to its sentence."""
        return (
            character in CLOSERS
            or character in "\u200d\ufe0f"
            or unicodedata.category(character) in ("So", "Sk")
        )

    def _shout_is_plain(self) -> bool:
        mark = self._mark
        return mark is not None and (
            mark.text in SHOUTS
            and mark.words.word.replace("'", "").replace("’", "").isalpha()
            and after_shout(mark.words) is ALWAYS
            and not self._spans.inside()
        )

    def _note_places(self, character: str, here: int) -> None:
        """Remember where the unit could end if it must: ``character``, at ``here``, begins a word."""
        if self._spans.hard:
            return
        between_digits = character.isdigit() and self._words_before[0].rstrip(",:")[-1:].isdigit()
        if (self._mark or self._last in _CLAUSE_MARKS) and not between_digits:
            self._clause_end = here
            if self._first and self._policy.first_clause and self._clause_pays(here):
                self._cut_at(here)
                return
        if self._gap:
            self._any_space_end = here
            if self._last.isalpha() and character.isalpha():
                self._space_end = here

    def _clause_pays(self, here: int) -> bool:
        return (
            self._last in _CLAUSE_MARKS
            and self._word_count >= self._policy.first_min_words
            and here - self._start >= self._policy.first_min_chars
            and not self._spans.inside()
        )

    def _best_cut(self) -> int:
        """Where a unit that reached its greatest length ends."""
        end = self._start + len(self._unit)
        if self._mark and self._gap and not self._spans.hard and self._rule(self._mark).sure:
            return end
        early = self._start + self._policy.max_chars // 3
        if self._clause_end > early:
            return self._clause_end
        if self._space_end > early:
            return self._space_end
        return self._any_space_end if self._any_space_end > self._start else end

    def _cut_at(self, place: int) -> None:
        """End the unit at this place of the whole text."""
        count = place - self._start
        self._ready.append("".join(self._unit[:count]))
        del self._unit[:count]
        self._start = place
        self._first = False
        self._word_count = 0
        if not self._unit:
            self._mark, self._last, self._gap = None, "", "\n" if "\n" in self._gap else ""
            self._word, self._words_before, self._opens = "", ("", ""), True
