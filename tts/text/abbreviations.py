"""English abbreviations and Roman numerals, said in full."""

import re

from tts.text.abbreviation_words import (
    BEFORE_NAMES,
    BEFORE_NUMBERS,
    STATES,
    STREETS,
    WITH_STOP,
    WITHOUT_STOP,
)
from tts.text.lexicon import Lexicon, word_set
from tts.text.numbers import cardinal, ordinal
from tts.text.rules import Rule, ends_sentence, rule, word_after

_AFTER_STREETS = frozenset({"n", "s", "e", "w", "nw", "ne", "sw", "se", "apt", "suite", "ste", "unit", "fl"})
_POINT_FORWARD = frozenset(
    {"vs", "e.g", "i.e", "approx", "viz", "cf", "incl", "excl", "esp", "P.O", "resp", "ca"}
)
_PARTS = (
    "Chapter|Section|Part|Volume|Act|Scene|Phase|War|Type|Appendix|Article|Book|Title|Level|Bowl|Stage|Class"
    "|Episode"
)
_RULERS = word_set(
    "henry louis elizabeth george charles william edward richard paul pius benedict napoleon "
    "catherine peter james alexander nicholas philip ferdinand leo john francis frederick albert "
    "carl gustav ramses"
)
_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_ROMAN_DIGITS = r"(?P<roman>(?=[IVXL])(?:XL|L?X{0,3})(?:IX|IV|V?I{0,3}))(?![\w'])"


def _alternatives(words: dict[str, str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


def roman(text: str) -> int:
    """The value of a Roman numeral."""
    values = [_ROMAN[letter] for letter in text]
    pairs = zip(values, [*values[1:], 0], strict=True)
    return sum(-value if value < following else value for value, following in pairs)


def _end(match: re.Match[str]) -> str:
    if not match["stop"] or (match["name"] in _POINT_FORWARD and match.string[match.end() :].strip()):
        return ""
    return "." if ends_sentence(match) else ""


def _title(match: re.Match[str], lexicon: Lexicon) -> str | None:
    """A title before a name; behind a name, ``St.`` and ``Dr.`` are streets."""
    name = match["name"]
    if name in STREETS and _follows_a_name(match):
        return None
    return BEFORE_NAMES[name] + " "


def _follows_a_name(match: re.Match[str]) -> bool:
    before = match.string[max(0, match.start() - 30) : match.start()].rstrip(" ")
    last = before.rpartition(" ")[2]
    return (
        bool(last)
        and (last[0].isupper() or last[0].isdecimal())
        and last[-1].isalpha()
        and len(last) > 1
        and bool(" " in before or last[0].isdecimal())
    )


def _street(match: re.Match[str], lexicon: Lexicon) -> str | None:
    if not _follows_a_name(match):
        return None
    onward = word_after(match) in _AFTER_STREETS
    return STREETS[match["name"]] + ("" if onward else _end(match))


def _with_stop(match: re.Match[str], lexicon: Lexicon) -> str:
    return WITH_STOP[match["name"]] + _end(match)


def _state(match: re.Match[str], lexicon: Lexicon) -> str | None:
    """``Miami, Fla.``: a state behind its town."""
    return STATES[match["name"]] + _end(match) if match.string.endswith(", ", 0, match.start()) else None


def _before_no(match: re.Match[str], lexicon: Lexicon) -> str | None:
    """``the acct. no. is``: the word no ends no sentence behind another abbreviation."""
    return "number" if match.string.endswith(". ", 0, match.start()) else None


def _without_stop(match: re.Match[str], lexicon: Lexicon) -> str:
    return WITHOUT_STOP[match["name"]] if match["name"] else "with "


def _before_number(match: re.Match[str], lexicon: Lexicon) -> str:
    return BEFORE_NUMBERS[match["name"].lower()] + " "


def _half_of_day(match: re.Match[str], lexicon: Lexicon) -> str:
    return f"{match['name'].lower()}.m."


def _numbered_part(match: re.Match[str], lexicon: Lexicon) -> str:
    return f"{match['part']} {cardinal(roman(match['roman']))}"


def _ruler(match: re.Match[str], lexicon: Lexicon) -> str | None:
    if match["name"].lower() not in _RULERS:
        return None
    return f"{match['name']} the {ordinal(roman(match['roman']))}"


ABBREVIATIONS: list[Rule] = [
    rule(r"(?P<name>[AaPp])\.[Mm](?P<stop>\.?)(?!\w)", _half_of_day, "letter", english=True),
    rule(
        r"(?P<name>[Nn]os?|[Nn][°º]|№|pp?|[Pp]g|[Cc]h(?:ap)?|[Ff]igs?|[Ee]q|[Ss]ec|[Aa]rt|[Vv]ol|[Ee]xt|[Aa]pt|[Ss]te|[Rr]m"
        r"|[Cc]a|[Rr]te|[Hh]wy)(?:\.[ ]?|(?<=[°º№])[ ]?)\#?(?=\d)",
        _before_number,
        english=True,
    ),
    rule(rf"(?P<name>{_alternatives(BEFORE_NAMES)})\.\s?(?=[A-Z])", _title, "letter", english=True),
    rule(rf"(?P<name>{_alternatives(STREETS)})\b(?P<stop>\.?)(?!\w)", _street, "letter", english=True),
    rule(rf"(?P<name>{_alternatives(WITH_STOP)})(?P<stop>\.)(?!\w)", _with_stop, "letter", english=True),
    rule(rf"(?P<name>{_alternatives(STATES)})(?P<stop>\.)(?!\w)", _state, "letter", english=True),
    rule(r"no\.(?=[ ][a-z])", _before_no, "letter", english=True),
    rule(
        rf"(?P<name>{_alternatives(WITHOUT_STOP)})(?<!/)(?:\.(?=[ ](?:[a-z]|&)))?(?![\w/]|\.\w)|w/",
        _without_stop,
        "letter",
        english=True,
    ),
    rule(rf"(?P<part>{_PARTS})\s{_ROMAN_DIGITS}", _numbered_part, "letter", english=True),
    rule(rf"(?P<name>[A-Z][a-z]{{2,12}})\s(?=[VX]|I[VIX]){_ROMAN_DIGITS}", _ruler, "letter", english=True),
]
