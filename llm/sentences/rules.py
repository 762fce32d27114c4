"""What may follow a mark for the mark to end a sentence: pure functions of the words beside it.

A rule never needs more than the one character after the white space, so a stream waits for no more than that.
"""

import re
from dataclasses import dataclass, replace
from typing import Literal

from llm.sentences.abbreviations import Abbreviations

Follower = Literal["lower", "capital", "digit", "quote", "other", "none"]

STOPS = frozenset(".…")
SHOUTS = frozenset("!?‼⁇⁈⁉؟۔।॥։።។။")
WIDE_MARKS = frozenset("。！？｡")
"""Marks of scripts that put no space between sentences."""
MARKS = STOPS | SHOUTS | WIDE_MARKS

_CAPITALS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_SENTENCE_OPENERS = frozenset("BHITWY")
"""Capitals that mostly begin function words (But, How, It, The, We, You), seldom a noun after ``U.S.``."""
_ZONES_AND_DAYS = frozenset("EM")
"""Capitals that after ``a.m.`` mostly begin a zone or a day (Eastern, Monday) or a title."""


@dataclass(frozen=True, slots=True)
class BoundaryRule:
    """Which followers make the mark the end of a sentence."""

    lower: bool = False
    digit: bool = False
    quote: bool = False
    other: bool = False
    capitals: frozenset[str] = frozenset()
    """ASCII capitals that do; a letter of another script does when this holds all of them."""

    @property
    def sure(self) -> bool:
        """Whether the mark ends the sentence before nearly anything."""
        return self.digit and self.other

    def allows(self, character: str) -> bool:
        """Whether the sentence ends before ``character``, the first one that is not white space."""
        kind = follower(character)
        if kind == "capital":
            return character in self.capitals or (len(self.capitals) == 26 and character not in _CAPITALS)
        return kind != "none" and bool(getattr(self, kind))


NEVER = BoundaryRule()
ALWAYS = BoundaryRule(lower=True, digit=True, quote=True, other=True, capitals=_CAPITALS)
BEFORE_CAPITAL = BoundaryRule(quote=True, capitals=_CAPITALS)
BEFORE_OPENER = BoundaryRule(capitals=_SENTENCE_OPENERS)
AFTER_CLOCK = BoundaryRule(quote=True, capitals=_CAPITALS - _ZONES_AND_DAYS)
AFTER_DAY = BoundaryRule(quote=True, capitals=_CAPITALS - frozenset("JFMASOND"))
"""``Mon. Jan. 5``: months begin with these."""
AFTER_COMPANY = BoundaryRule(quote=True, capitals=_CAPITALS - frozenset("L"))
"""``Acme Co. Ltd.``"""
UNLESS_DIGIT = replace(ALWAYS, digit=False)
GERMAN_ORDINAL = replace(ALWAYS, lower=False, digit=False, capitals=frozenset())

_COUNTRIES = frozenset({"u.s", "u.k", "e.u", "u.n"})
_CLOCK = frozenset({"a.m", "p.m"})
_DAYS = frozenset({"mon", "tue", "tues", "wed", "weds", "thu", "thur", "thurs", "fri", "sat", "sun"})
_NAMES_WITH_SHOUT = frozenset({"yahoo", "jeopardy", "wham", "yum", "oklahoma"})
_LABELS = frozenset(
    {
        "and",
        "or",
        "option",
        "plan",
        "vitamin",
        "grade",
        "type",
        "group",
        "team",
        "section",
        "part",
        "point",
        "class",
        "letter",
        "answer",
        "choice",
        "room",
        "gate",
        "terminal",
        "building",
        "platform",
        "line",
        "exit",
        "hepatitis",
        "item",
        "level",
        "zone",
        "step",
        "appendix",
        "exhibit",
        "schedule",
        "unit",
        "block",
        "suite",
        "seat",
        "row",
        "column",
        "size",
        "model",
        "series",
        "season",
        "version",
        "phase",
        "figure",
    }
)
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_NUMBER = re.compile(r"[#$€£¥]?\d[\d.,:]*")
_CLIPPED = re.compile(r"([b-df-hj-np-tv-z])\1[b-df-hj-np-rt-z]$")
"""A doubled consonant and another one but ``s``: ``appt``, ``addr``, ``assn``."""
_SAYABLE = re.compile(r"[aeiou]|y(?!$)|^(?:[a-z]{1,2}|s[a-z]{2})y$")
"""A vowel; a ``y`` at the end is one of a short word only (``dry``, not ``dlvy`` or ``mthly``)."""
_MARKER = re.compile(r"\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,5})")
_STREETS = frozenset(
    {
        "st",
        "dr",
        "ft",
        "mt",
        "pl",
        "sq",
        "ct",
        "ave",
        "rd",
        "ln",
        "blvd",
        "hwy",
        "pkwy",
        "fwy",
        "expy",
        "plz",
        "ctr",
        "cres",
        "cir",
        "ter",
        "trl",
        "jct",
    }
)


def follower(character: str) -> Follower:
    """The kind of character that comes after a mark."""
    if character.islower():
        return "lower"
    if character.isdigit():
        return "digit"
    if character.isalpha():
        return "capital"
    if character in "\"'“‘«„‹「『¿¡":
        return "quote"
    if character in ",;:)]}%/\\”’»":
        return "none"
    return "other"


@dataclass(frozen=True, slots=True)
class Words:
    """The words that lead to a mark: without the marks, opening brackets and quotes around them."""

    word: str
    """The word the mark stands behind."""
    before: str = ""
    """The word before it in the same sentence, with its own marks."""
    before_that: str = ""
    opens: bool = False
    """Whether the word begins its line or sentence, or follows a colon: a list's marker may stand there."""


def after_stop(words: Words, table: Abbreviations) -> BoundaryRule:
    """The rule for one full stop behind a word."""
    word = words.word
    lower = word.lower()
    if not word:
        return BEFORE_CAPITAL
    if words.opens and _MARKER.fullmatch(word):
        return NEVER
    if _NUMBER.fullmatch(word):
        return GERMAN_ORDINAL if table.ordinal_stop and len(word) <= 2 else ALWAYS
    if lower in table.numbered and lower not in table.may_end:
        if words.before[-1:] == ".":
            return BEFORE_CAPITAL  # "the acct. no. is": no word that ends a sentence
        return UNLESS_DIGIT if len(word) > 1 else BEFORE_CAPITAL
    if lower in table.never:
        return NEVER
    if lower in _CLOCK:
        return AFTER_CLOCK
    if lower in _COUNTRIES:
        return BEFORE_OPENER
    if lower in _STREETS and _is_street(words):
        return BEFORE_CAPITAL if not words.before_that[:1].isdigit() else NEVER
    if lower in table.titles and word[0].isupper():
        return NEVER
    if lower in _DAYS and word[0].isupper():
        return AFTER_DAY
    if lower == "co":
        return AFTER_COMPANY
    if lower in table.may_end or (lower in table.capitalised and word[0].isupper()):
        return BEFORE_CAPITAL
    if len(word) == 1 and word.isalpha():
        return _after_letter(words)
    if _DOTTED.fullmatch(word):
        return NEVER
    return ALWAYS if _looks_like_a_word(word) else BEFORE_CAPITAL


def _is_street(words: Words) -> bool:
    """``Main St.`` and ``5th Ave.``, not ``Dr. Smith``: the word before names it."""
    before = words.before
    return before[-1:].isalpha() and (before[0].isupper() or before[0].isdigit())


def _after_letter(words: Words) -> BoundaryRule:
    """One letter: an initial (``Jonas E. Smith``), a pronoun (``you and I.``), or a label's (``plan B.``)."""
    before = words.before.rstrip(",")
    if len(before) == 1 and before.isalnum():
        return BEFORE_CAPITAL  # a code or a choice read out: "A B 1 2 C.", "A, B, C."
    label = words.before_that if before == "is" else before  # "option B.", "the answer is B."
    if label.lower() in _LABELS or words.word.islower():
        return BEFORE_CAPITAL
    if words.word == "I" and before[:1].islower():
        return BEFORE_CAPITAL
    return NEVER


def _looks_like_a_word(word: str) -> bool:
    """No unknown abbreviation: those have no vowel (``mgmt``, ``Pkwy``) or end as no word does (``acct``)."""
    if not (word.isascii() and word.isalpha()) or (word.isupper() and len(word) > 1):
        return True
    letters = word.lower()
    return bool(_SAYABLE.search(letters)) and not _CLIPPED.search(letters)


def is_list_marker(word: str) -> bool:
    """Whether a line's first word numbers a list: ``1.``, ``a)``, ``(iv)``."""
    return word[-1] in ".)" and bool(_MARKER.fullmatch(word.rstrip(".)")))


def after_shout(words: Words) -> BoundaryRule:
    """The rule for ``!`` and ``?`` behind a word."""
    return BEFORE_OPENER if words.word.lower() in _NAMES_WITH_SHOUT else ALWAYS


def after_ellipsis(dots: int, spaced: bool) -> BoundaryRule:
    """The rule for several dots; ``. . .`` in the middle of a sentence stands for words left out."""
    return NEVER if spaced and dots == 3 else BEFORE_CAPITAL


def after_closer(rule: BoundaryRule) -> BoundaryRule:
    """The rule once a quote or bracket closed behind the mark: ``"Really?" he said`` goes on."""
    return replace(rule, lower=False)


def ends_without_space(words: Words, mark: str, character: str, table: Abbreviations) -> bool:
    """Whether a sentence ends before a character that touches the mark (``one.Two``, ``Hi!How``)."""
    word = words.word
    if not (word.isalpha() and character.isupper()):
        return False
    if mark in SHOUTS:
        return True
    return mark == "." and word.islower() and len(word) > 1 and after_stop(words, table) is ALWAYS
