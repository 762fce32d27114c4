"""Numbers in words."""

import re
from functools import lru_cache

from num2words import num2words

from tts.text.lexicon import Lexicon

MOST_DIGITS = 15
"""Longer integers are read digit by digit."""

NUMBER = (
    r"(?:\d{1,2}(?:,\d{2}){1,4},\d{3}|\d{1,3}(?:[,.]\d{3}){1,5}(?:[.,]\d{1,40})?|\d{1,30}(?:[.,]\d{1,40})?)"
    r"(?![.,]?\d)"
)
"""A number as it is written, with marks between thousands (or lakhs) or none; every repeat is bounded."""
SIGN = r"(?P<sign>(?<![\w)])[-–+](?=\d))?"
"""A sign that stands free on its left."""
RANGE = rf"(?P<low>{NUMBER})(?:\s?[-–—]\s?(?P<high>{NUMBER}))?"


@lru_cache(maxsize=4096)
def cardinal(value: int, code: str = "en") -> str:
    """``42`` in words of a language; ``value`` has at most `MOST_DIGITS` digits."""
    words: str = num2words(value, lang=code)
    return words.replace(",", "")


@lru_cache(maxsize=1024)
def ordinal(value: int, code: str = "en") -> str:
    """``42nd`` in words."""
    words: str = num2words(value, lang=code, to="ordinal")
    return words.replace(",", "")


def integer(digits: str, code: str = "en") -> str:
    """Digits in words: as one number, or one by one when it is too long or begins with a zero."""
    if len(digits) > MOST_DIGITS or (len(digits) > 1 and digits[0] == "0"):
        return one_by_one(digits, code)
    return cardinal(int(digits), code)


def one_by_one(digits: str, code: str = "en") -> str:
    """``407`` as ``four zero seven``."""
    return " ".join(cardinal(int(digit), code) for digit in digits)


def year(value: int) -> str:
    """A year as English says it: ``nineteen oh five``, ``two thousand nine``, ``twenty twenty-six``."""
    century, rest = divmod(value, 100)
    if century % 10 == 0 and rest < 10:
        thousand = f"{cardinal(century // 10)} thousand"
        return f"{thousand} {cardinal(rest)}" if rest else thousand
    if rest == 0:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {'oh ' if rest < 10 else ''}{cardinal(rest)}"


def decade(digits: str) -> str:
    """``1980`` or ``80`` with an ``s`` behind: ``nineteen eighties``, ``eighties``."""
    words = year(int(digits)) if len(digits) == 4 else cardinal(int(digits))
    return f"{words[:-1]}ies" if words.endswith("y") else f"{words}s"


def parts(written: str, decimal_comma: bool) -> tuple[str, str]:
    """A number as written to its integer and fraction digits.

    Thousands are marked by the language's own mark, or by the other one when that is what the groups say: in
    English ``3,50`` can only be a decimal, and so can ``3.50`` in German.
    """
    mark, other = (",", ".") if decimal_comma else (".", ",")
    if mark in written and other in written:
        decimal = max(mark, other, key=written.rindex)
    elif mark in written:
        decimal = mark if written.count(mark) == 1 else ""
    elif other in written:
        decimal = "" if len(written.rpartition(other)[2]) == 3 else other
    else:
        decimal = ""
    whole, _, fraction = written.rpartition(decimal) if decimal else (written, "", "")
    return "".join(filter(str.isdecimal, whole)), fraction


def number(written: str, lexicon: Lexicon) -> str:
    """A written number in words, decimals digit by digit."""
    whole, fraction = parts(written, lexicon.decimal_comma)
    grouped = len(whole) > 3 and not written.startswith(whole)
    if grouped:
        whole = whole.lstrip("0") or "0"
    if not fraction:
        return integer(whole, lexicon.code)
    return f"{integer(whole, lexicon.code)} {lexicon.point} {one_by_one(fraction, lexicon.code)}"


def is_one(written: str) -> bool:
    """Whether a noun behind the number is in the singular."""
    return written == "1"


def amount(low: str, high: str | None, lexicon: Lexicon) -> str:
    """One number, or a range of two, in words."""
    if high is None:
        return number(low, lexicon)
    return f"{number(low, lexicon)} {lexicon.to} {number(high, lexicon)}"


def sign(match: re.Match[str], lexicon: Lexicon) -> str:
    """The word for a sign in front of a number, with a space behind it."""
    return {"-": f"{lexicon.minus} ", "–": f"{lexicon.minus} ", "+": f"{lexicon.plus} "}.get(
        match["sign"] or "", ""
    )
