"""Amounts of money: ``$3.50``, ``€3,50``, ``$5.2M``, ``USD 20``, ``50¢``, ``$5-10``, ``$20/month``."""

import re

from tts.text.lexicon import Lexicon
from tts.text.numbers import NUMBER, cardinal, integer, number, parts
from tts.text.rules import Rule, attributive, rule

_SIGNS = r"(?:US|CA|AU|NZ|HK|CN|[RCA])?\$|CN¥|[€£¥₹₩₽₺₴₪฿₫₱₦]"
_CODES = (
    "USD|EUR|GBP|JPY|CNY|INR|KRW|RUB|TRY|UAH|ILS|THB|MXN|NGN|BRL|CAD|AUD|NZD|HKD|SGD|CHF|SEK|NOK|DKK|PLN|ZAR"
)
_SCALE = r"\s?(?P<scale>thousand|million|billion|trillion|bn|mn|[KMBTkm])\b"
_AMOUNT = rf"(?:\d{{1,3}}(?:[ ]\d{{3}}){{1,5}}(?:[.,]\d{{1,2}})?(?![.,]?\d)|{NUMBER})"
"""A number, spaces between its thousands allowed."""
_PER = r"(?:\s?/\s?(?P<per>[^\W\d_]{1,12})\b)?"
_SCALE_WORDS = {"bn": "billion", "mn": "million", "m": "million", "k": "thousand"}
_PER_WORDS = {
    "mo": "month",
    "hr": "hour",
    "h": "hour",
    "yr": "year",
    "wk": "week",
    "lb": "pound",
    "oz": "ounce",
}
_PER_WORDS |= {
    "kg": "kilogram",
    "min": "minute",
    "gal": "gallon",
    "mi": "mile",
    "d": "day",
    "GB": "gigabyte",
    "kWh": "kilowatt hour",
}


def _money(match: re.Match[str], lexicon: Lexicon) -> str | None:
    currency = lexicon.money.get(match["currency"])
    if currency is None:
        return None
    found = match.groupdict()
    minus = f"{lexicon.minus} " if found.get("sign") else ""
    low, high, scale = match["low"], found.get("high"), found.get("scale")
    exact = bool(parts(low, lexicon.decimal_comma)[1]) and not scale
    many = currency.one if lexicon.code == "en" and attributive(match) and not exact else currency.many
    if scale:
        scale_word = lexicon.scales.get(scale.upper()) or _SCALE_WORDS.get(scale.lower(), scale)
        amount = number(low, lexicon) + (f" {lexicon.to} {number(high, lexicon)}" if high else "")
        words = f"{amount} {scale_word} {_of(scale_word, many, lexicon)}{many}"
    elif high:
        words = f"{number(low, lexicon)} {lexicon.to} {number(high, lexicon)} {many}"
    else:
        words = _exact(low, currency.one, many, currency.cent, currency.cents, lexicon)
    per = found.get("per")
    if per:
        if lexicon.code != "en":
            return f"{minus}{words} {lexicon.slash} {per}"
        words += f" per {_PER_WORDS.get(per, per)}"
    return minus + words


def _of(scale: str, noun: str, lexicon: Lexicon) -> str:
    """What stands between a million and a noun: ``millones de euros``, ``millions d'euros``."""
    if lexicon.code not in ("es", "fr") or scale in ("mil", "mille"):
        return ""
    return "d'" if lexicon.code == "fr" and noun[0] in "aeiou" else "de "


def _exact(written: str, one: str, many: str, cent: str, cents: str, lexicon: Lexicon) -> str:
    """An amount in units and hundredths; more or fewer than two decimals are read as decimals."""
    whole, fraction = parts(written, lexicon.decimal_comma)
    if not fraction or (fraction == "00" and cent):
        return f"{_counted(whole, one, lexicon)} {one if whole == '1' else many}"
    if len(fraction) != 2 or not cent:
        return f"{number(written, lexicon)} {many}"
    hundredths = int(fraction)
    small = f"{_counted(str(hundredths), cent, lexicon)} {cent if hundredths == 1 else cents}"
    if not whole.strip("0"):
        return small
    return f"{_counted(whole, one, lexicon)} {one if whole == '1' else many} {lexicon.both} {small}"


def _counted(digits: str, noun: str, lexicon: Lexicon) -> str:
    """The count in front of a currency's name: one, un, ein, una."""
    if digits == "1" and lexicon.code != "en":
        feminine = noun in ("libra", "livre")
        return {"es": "una" if feminine else "un", "fr": "une" if feminine else "un", "de": "ein"}[
            lexicon.code
        ]
    return integer(digits, lexicon.code) if len(digits) > 1 or digits != "0" else cardinal(0, lexicon.code)


def _cents(match: re.Match[str], lexicon: Lexicon) -> str:
    money = lexicon.money["$"]
    one = match["low"] == "1" or attributive(match)
    return f"{number(match['low'], lexicon)} {money.cent if one else money.cents}"


_RANGE_HIGH = rf"(?:\s?[-–—]\s?(?:{_SIGNS})?(?P<high>{_AMOUNT}))?"

MONEY: list[Rule] = [
    rule(
        rf"(?P<sign>(?<![\w)])[-–]\s?)?(?P<currency>{_SIGNS})\s?(?P<low>{_AMOUNT}){_RANGE_HIGH}(?:{_SCALE})?{_PER}",
        _money,
    ),
    rule(
        rf"(?P<low>{_AMOUNT})(?:\s?[-–—]\s?(?P<high>{_AMOUNT}))?(?:{_SCALE})?\s?(?P<currency>[€£¥₹₽₺₴₪₫$]|(?:{_CODES})\b){_PER}",
        _money,
        "digit",
    ),
    rule(rf"(?P<currency>{_CODES})\s?(?P<low>{_AMOUNT})(?:{_SCALE})?", _money, "letter"),
    rule(rf"(?P<low>{_AMOUNT})\s?¢", _cents, "digit"),
]
