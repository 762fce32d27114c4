"""Numbers that stand alone: counts, years, decades, ordinals, fractions, ranges, digits one by one."""

import re

from tts.text.cues import is_code, is_counted
from tts.text.lexicon import Lexicon, word_set
from tts.text.numbers import (
    MOST_DIGITS,
    NUMBER,
    RANGE,
    SIGN,
    amount,
    cardinal,
    decade,
    integer,
    number,
    one_by_one,
    ordinal,
    parts,
    sign,
    year,
)
from tts.text.rules import Rule, cue_before, rule, word_after, word_before

_FRACTIONS = {"½": "a half", "⅓": "a third", "⅔": "two thirds", "¼": "a quarter", "¾": "three quarters"}
_FRACTIONS |= {
    "⅛": "an eighth",
    "⅜": "three eighths",
    "⅝": "five eighths",
    "⅞": "seven eighths",
    "⅕": "a fifth",
}
_STATE = re.compile(r"\b[A-Z]{2} $")
_DECADE_CUES = word_set("the his her their our my your early mid late in")
_SCORE_CUES = word_set("score scored rated rating got gave")
_VERSION_CUES = word_set("version release build python java node ruby php ios android ubuntu windows")
_YEAR_CUES = word_set(
    "in since until till by of from before after during year circa around mid early late spring "
    "summer autumn fall winter january february march april june july august september october "
    "november december jan feb mar apr jun jul aug sep sept oct nov dec class copyright"
)

TOTAL_CUES = word_set(
    "is was are were costs cost of to about over than from nearly almost around totals reached sold made "
    "have has weighs holds owes covers pays earns spans seats serves reaches measures ran runs owe weigh pay "
    "paid owed ran walked drove sailed flew"
)
_AMOUNT_CUES = word_set("by of from around")
"""Those of them that stand before counts as well (``a total of 1905 users``)."""


def year_range(low: str, high: str) -> tuple[str, str] | None:
    """Both ends in words when a range is one of years: ``2010-2015``, ``1914-18``."""
    if len(low) != 4 or not 1100 <= int(low) <= 2099:
        return None
    if len(high) == 4 and int(low) < int(high) <= 2099:
        return year(int(low)), year(int(high))
    if len(high) == 2 and int(high) > int(low[2:]):
        return year(int(low)), cardinal(int(high))
    return None


def is_decade(match: re.Match[str]) -> bool:
    """Whether ``30s`` is a decade of a life or a century, not half a minute."""
    return len(match["low"]) == 4 or (len(match["low"]) == 2 and word_before(match) in _DECADE_CUES)


def _decade(match: re.Match[str], lexicon: Lexicon) -> str | None:
    digits = match["digits"]
    return (
        None
        if len(digits) == 2 and not match["mark"] and word_before(match) not in _DECADE_CUES
        else decade(digits)
    )


def _ordinal(match: re.Match[str], lexicon: Lexicon) -> str | None:
    digits = match["digits"].replace(",", "")
    return ordinal(int(digits)) if len(digits) <= MOST_DIGITS else None


def fraction(above: int, below: int) -> str | None:
    """A simple fraction in words; None where it is more likely a ratio, a date or a pair."""
    if not 0 < above < below or not (below <= 20 or below in (32, 64, 100)):
        return None
    if below == 2:
        return "one half"
    if below == 4:
        return "one quarter" if above == 1 else f"{cardinal(above)} quarters"
    return f"{cardinal(above)} {ordinal(below)}{'s' if above > 1 else ''}"


def _fraction(match: re.Match[str], lexicon: Lexicon) -> str | None:
    if match["whole"] is None and (match["above"], match["below"]) == ("24", "7"):
        return "twenty-four seven"
    if match["whole"] is None and word_before(match) in _SCORE_CUES:
        return f"{integer(match['above'])} out of {integer(match['below'])}"
    if match["whole"] is None and match["above"] == match["below"]:
        return f"{integer(match['above'])} {integer(match['below'])}"
    words = fraction(int(match["above"]), int(match["below"]))
    if match["whole"] is None:
        return words or f"{integer(match['above'])} {lexicon.slash} {integer(match['below'])}"
    if words is None:
        return None
    part = f"a {words.removeprefix('one ')}" if words.startswith("one ") else words
    return f"{cardinal(int(match['whole']))} and {part}"


def _vulgar(match: re.Match[str], lexicon: Lexicon) -> str:
    words = _FRACTIONS[match["mark"]]
    return f"{integer(match['whole'])} and {words}" if match["whole"] else words.replace("a half", "one half")


def _rating(match: re.Match[str], lexicon: Lexicon) -> str:
    return f"{number(match['above'], lexicon)} out of {integer(match['below'])}"


def _short_year(match: re.Match[str], lexicon: Lexicon) -> str:
    digits = match["digits"]
    return f"oh {cardinal(int(digits[1]))}" if digits[0] == "0" else cardinal(int(digits))


def _times(match: re.Match[str], lexicon: Lexicon) -> str:
    """``2x`` and ``1920x1080``."""
    low = number(match["low"], lexicon)
    if match["high"] is None:
        return f"{low} {lexicon.times}"
    return f"{low} {'by' if match['mark'] == 'x' else lexicon.times} {number(match['high'], lexicon)}"


def _times_range(match: re.Match[str], lexicon: Lexicon) -> str:
    """``2-3x``."""
    return f"{amount(match['low'], match['high'], lexicon)} {lexicon.times}"


def _range(match: re.Match[str], lexicon: Lexicon) -> str:
    low, high = match["low"], match["high"]
    years = year_range(low, high) if lexicon.code == "en" else None
    if years:
        return f"{years[0]} {lexicon.to} {years[1]}"
    if len(low) > 1 and low[0] == "0" and low.isdecimal():
        return f"{one_by_one(low, lexicon.code)}, {one_by_one(high, lexicon.code)}"
    return amount(low, high, lexicon)


def _scaled(match: re.Match[str], lexicon: Lexicon) -> str | None:
    """``10K`` is ten thousand; one digit and a letter is a code (``gate 4B``, ``a 5K``)."""
    if len(match["low"]) == 1 and match["high"] is None:
        return None
    scale = lexicon.scales[match["scale"].upper()]
    return f"{sign(match, lexicon)}{amount(match['low'], match['high'], lexicon)} {scale}"


def _is_year(match: re.Match[str], value: int) -> bool:
    """Four digits are a year after a word like ``in``, or alone when near our time with nothing counted."""
    before, counted = word_before(match).rstrip("."), word_after(match)
    things = counted.endswith("s") and counted not in ("was", "is", "has", "as", "his", "this")
    if before in _YEAR_CUES and (before not in _AMOUNT_CUES or not things):
        return 1100 <= value <= 2099
    return 1900 <= value <= 2099 and not things


def _is_zip(match: re.Match[str]) -> bool:
    """Five digits behind a state's two letters."""
    return len(match["low"]) == 5 and bool(
        _STATE.search(match.string, max(0, match.start() - 4), match.start())
    )


def _number(match: re.Match[str], lexicon: Lexicon) -> str | None:
    low = match["low"]
    if "," in low and "." not in low and not lexicon.decimal_comma and parts(low, False)[1]:
        return None  # "2,3" is a list of two in English
    if low.isdecimal():
        long = len(low) >= 7 and not is_counted(match.string, match.end())
        if _is_zip(match) or long or (is_code(match, low) and not match["sign"]):
            return sign(match, lexicon) + one_by_one(low, lexicon.code)
        if lexicon.code == "en" and len(low) == 4 and not match["sign"] and _is_year(match, int(low)):
            return year(int(low))
    if lexicon.code == "en" and cue_before(match) in _VERSION_CUES and low.count(".") == 1 and "," not in low:
        return " point ".join(map(integer, low.split(".")))
    return sign(match, lexicon) + number(low, lexicon)


def _spaced_thousands(match: re.Match[str], lexicon: Lexicon) -> str | None:
    """``1 234`` where commas are for decimals; in English where nothing but thousands can be meant."""
    groups = match["low"].split(" ")
    clear = len(groups) > 2 or groups[-1] == "000" or _counts_after_space(match)
    if not (lexicon.decimal_comma or clear):
        return None
    return sign(match, lexicon) + integer("".join(groups), lexicon.code)


def _counts_after_space(match: re.Match[str]) -> bool:
    """``12 500 people``, not ``2 500 mg tablets`` or ``rooms 12 140``."""
    counted, before = word_after(match), word_before(match)
    if counted in ("", "to", "and", "or", "a", "in", "last", "this") and before in TOTAL_CUES:
        return True
    labelled = before.endswith("s") and before not in TOTAL_CUES
    return (counted == "people" or (len(counted) > 4 and counted.endswith("s"))) and not labelled


def _hash(match: re.Match[str], lexicon: Lexicon) -> str:
    digits = match["digits"]
    words = one_by_one(digits, lexicon.code) if len(digits) >= 4 else integer(digits, lexicon.code)
    return f"{lexicon.number} {words}"


def _ratio(match: re.Match[str], lexicon: Lexicon) -> str:
    return f"{integer(match['low'], lexicon.code)} {lexicon.to} {integer(match['high'], lexicon.code)}"


def _hyphenated(match: re.Match[str], lexicon: Lexicon) -> str:
    whole, fraction_digits = parts(match["low"], lexicon.decimal_comma)
    words = (
        number(match["low"], lexicon) if fraction_digits or len(whole) < 5 else integer(whole, lexicon.code)
    )
    return f"{words} "


FIGURES: list[Rule] = [
    rule(r"(?P<mark>')?(?P<digits>\d0|1[1-9]\d0|20\d0)s\b", _decade, english=True),
    rule(r"(?P<digits>\d{1,3}(?:,\d{3}){0,4})(?:st|nd|rd|th)\b", _ordinal, "digit", english=True),
    rule(r"(?P<above>\d{1,3}\.\d{1,2})/(?P<below>\d{1,3})(?![\w/])", _rating, "digit", english=True),
    rule(r"'(?P<digits>\d\d)(?![\w'])", _short_year, "mark", english=True),
    rule(
        rf"(?P<low>{NUMBER})\s?[-–—]\s?(?P<high>{NUMBER})\s?[x×](?!\s?\d)(?![\w×])",
        _times_range,
        "digit",
        english=True,
    ),
    rule(
        rf"(?P<low>{NUMBER})\s?(?P<mark>[x×])(?:\s?(?P<high>{NUMBER}))?(?![\w×])",
        _times,
        "digit",
        english=True,
    ),
    rule(
        r"(?:(?P<whole>\d{1,3})[ ])?(?P<above>\d{1,3})/(?P<below>\d{1,3})(?![\w/])",
        _fraction,
        "digit",
        english=True,
    ),
    rule(rf"(?:(?P<whole>\d{{1,3}})[ ]?)?(?P<mark>[{''.join(_FRACTIONS)}])", _vulgar, english=True),
    rule(rf"{SIGN}{RANGE}(?P<scale>[KMBT]|k)(?!\w)", _scaled),
]

NUMBERS: list[Rule] = [
    rule(r"(?P<low>\d{1,2}):(?P<high>\d{1,2})(?![\w:])", _ratio, "digit"),
    rule(rf"(?P<low>{NUMBER})\s?[-–—]\s?(?P<high>{NUMBER})(?![\w-])", _range, "digit"),
    rule(r"\#\s?(?P<digits>\d{1,15})(?![\w-])", _hash, "mark"),
    rule(rf"(?P<sign>)(?P<low>{NUMBER})-(?=[^\W\d_]{{2}})", _hyphenated, "digit"),
    rule(rf"{SIGN}(?P<low>\d{{1,3}}(?:[ ]\d{{3}}){{1,4}})(?![\d-]|[ ]\d)", _spaced_thousands),
    rule(rf"{SIGN}(?P<low>{NUMBER})", _number),
    rule(r"\d{1,400}", lambda match, lexicon: one_by_one(match[0], lexicon.code), "digit"),
]
