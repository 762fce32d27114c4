"""Dates and times of day."""

import re

from tts.text.lexicon import Lexicon, word_set
from tts.text.numbers import cardinal, ordinal, year
from tts.text.rules import Rule, ends_sentence, rule, word_before


def _names(text: str) -> list[str]:
    return text.split()


_MONTHS = {
    "en": _names("January February March April May June July August September October November December"),
    "es": _names("enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"),
    "fr": _names("janvier février mars avril mai juin juillet août septembre octobre novembre décembre"),
    "de": _names("Januar Februar März April Mai Juni Juli August September Oktober November Dezember"),
}
_MONTH_OF = {name[:3].lower(): name for name in _MONTHS["en"]}
_MONTH = (
    r"(?P<month>Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\b\.?"
)
_DAYS = {
    "Mon": "Monday",
    "Tue": "Tuesday",
    "Tues": "Tuesday",
    "Wed": "Wednesday",
    "Weds": "Wednesday",
    "Thu": "Thursday",
    "Thur": "Thursday",
    "Thurs": "Thursday",
    "Fri": "Friday",
    "Sat": "Saturday",
    "Sun": "Sunday",
}
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])"
_YEAR = r"(?P<year>1[1-9]\d\d|20\d\d)"
_DATE_CUES = word_set("on by due since until before after from dated of for")
_HALVES = {"a": "a.m.", "p": "p.m."}
_CLOCK = r"(?:\s?(?:Uhr|h)(?!\w))?"
"""What says that it is a time of day; not said, or in the words for it already."""
_HALF = r"(?P<half>[AaPp])\.?[Mm]\.?(?![^\W_])"


def date(
    day: int, month: int, year_value: int | None, lexicon: Lexicon, declined: bool = False
) -> str | None:
    """A day in words, in the order the language has; None where there is no such day.

    ``declined`` is for a German preposition in front (``am dritten Mai``).
    """
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    name = _MONTHS[lexicon.code][month - 1]
    if lexicon.code == "en":
        words = f"{name} {ordinal(day)}"
        return words if year_value is None else f"{words}, {year(year_value)}"
    count = cardinal(day, lexicon.code)
    if day == 1 and lexicon.code in ("fr", "es"):
        count = {"fr": "premier", "es": "primero"}[lexicon.code]
    if lexicon.code == "de":
        count = ordinal(day, "de") + ("n" if declined else "r")
    link = " de " if lexicon.code == "es" else " "
    words = f"{count}{link}{name}"
    return words if year_value is None else f"{words}{link}{cardinal(year_value, lexicon.code)}"


def _full_year(digits: str) -> int:
    value = int(digits)
    return value if len(digits) == 4 else value + (1900 if value >= 70 else 2000)


def _iso(match: re.Match[str], lexicon: Lexicon) -> str | None:
    words = date(int(match["day"]), int(match["month"]), int(match["year"]), lexicon)
    if words is None or match["hour"] is None:
        return words
    said = clock(int(match["hour"]), int(match["minute"]), "", lexicon)
    return None if said is None else f"{words} {lexicon.at if lexicon.code == 'en' else ','} {said}"


def _slashed(match: re.Match[str], lexicon: Lexicon) -> str | None:
    """``3/4/2025``: month first in English, unless that can't be; day first elsewhere."""
    first, second = int(match["first"]), int(match["second"])
    month, day = (first, second) if lexicon.code == "en" and first <= 12 else (second, first)
    return date(day, month, _full_year(match["year"]), lexicon)


def _dotted(match: re.Match[str], lexicon: Lexicon) -> str | None:
    declined = word_before(match) in ("am", "vom", "zum", "dem", "den", "ab", "bis")
    return date(int(match["day"]), int(match["month"]), _full_year(match["year"]), lexicon, declined)


def _short(match: re.Match[str], lexicon: Lexicon) -> str | None:
    """``on 3/4``: a date only where the word before says so."""
    return date(int(match["second"]), int(match["first"]), None, lexicon) if _is_dated(match) else None


def _is_dated(match: re.Match[str]) -> bool:
    before = match.string[max(0, match.start() - 12) : match.start()].rstrip(" ,.").rpartition(" ")[2]
    return before.lower() in _DATE_CUES or before in _DAYS or before in _DAYS.values()


def _month_first(match: re.Match[str], lexicon: Lexicon) -> str:
    words = f"{_MONTH_OF[match['month'][:3].lower()]} {ordinal(int(match['day']))}"
    if match["last"]:
        words += f" {lexicon.to} {ordinal(int(match['last']))}"
    return f"{words}, {year(int(match['year']))}" if match["year"] else words


def _day_first(match: re.Match[str], lexicon: Lexicon) -> str:
    the = "" if word_before(match) == "the" else "the "
    words = f"{the}{ordinal(int(match['day']))} of {_MONTH_OF[match['month'][:3].lower()]}"
    return f"{words}, {year(int(match['year']))}" if match["year"] else words + _kept_stop(match)


def _month_year(match: re.Match[str], lexicon: Lexicon) -> str:
    return f"{_MONTH_OF[match['month'][:3].lower()]} {year(int(match['year']))}"


def _month_name(match: re.Match[str], lexicon: Lexicon) -> str | None:
    """A month's abbreviation with its stop, or a day's."""
    name = _MONTH_OF.get(match["name"][:3].lower()) if match["name"] not in _DAYS else _DAYS[match["name"]]
    if name is None:
        return None
    if match["name"] in ("Mar", "Jun", "Jul", "Sat", "Sun") and (not match["stop"] or ends_sentence(match)):
        return None  # "the Sun. It": a word, not a day
    return name + (
        "." if match["stop"] and ends_sentence(match) and match.end() == len(match.string.rstrip()) else ""
    )


def _day_range(match: re.Match[str], lexicon: Lexicon) -> str:
    return f"{_DAYS[match['first']]} {lexicon.to} {_DAYS[match['last']]}{_kept_stop(match)}"


def _kept_stop(match: re.Match[str]) -> str:
    """The stop of an abbreviation when it ends the sentence too."""
    return "." if match[0].endswith(".") and ends_sentence(match) else ""


def clock(hour: int, minute: int, half: str, lexicon: Lexicon) -> str | None:
    """A time of day in words; ``half`` is a, p or nothing. None where there is no such time."""
    if hour > 24 or minute > 59:
        return None
    if lexicon.code != "en":
        return _clock_abroad(hour, minute, lexicon)
    if not half and (hour > 12 or hour == 0):
        half = "a" if hour in (0, 24) else "p"
    spoken_half = _HALVES.get(half, "")
    count = cardinal((hour - 1) % 12 + 1)
    if minute:
        count += f" {'oh ' if minute < 10 else ''}{cardinal(minute)}"
    elif not half:
        count += " o'clock"
    return f"{count} {spoken_half}".rstrip()


def _clock_abroad(hour: int, minute: int, lexicon: Lexicon) -> str:
    count = cardinal(hour, lexicon.code)
    spoken = cardinal(minute, lexicon.code) if minute else ""
    if lexicon.code == "de":
        return f"{'ein' if hour == 1 else count} Uhr {spoken}".rstrip()
    if lexicon.code == "fr":
        return f"{'une' if hour == 1 else count} heure{'s' if hour > 1 else ''} {spoken}".rstrip()
    return f"{'una' if hour == 1 else count} {'y ' + spoken if minute else 'en punto'}"


def _time(match: re.Match[str], lexicon: Lexicon) -> str | None:
    found = match.groupdict()
    half = (found.get("half") or "").lower()
    words = clock(int(match["hour"]), int(match["minute"] or 0), half, lexicon)
    if words is None:
        return None
    if found.get("second"):
        words += f" and {cardinal(int(found['second']))} seconds"
    return words


def _time_range(match: re.Match[str], lexicon: Lexicon) -> str | None:
    half = (match["half"] or "").lower()
    first_half = (match["first_half"] or "").lower()[:1]
    first = clock(int(match["first_hour"]), int(match["first_minute"] or 0), first_half, lexicon)
    last = clock(int(match["hour"]), int(match["minute"] or 0), half, lexicon)
    if first is None or last is None:
        return None
    if half and not first_half:
        first = first.removesuffix(" o'clock")
    return f"{first} {lexicon.to} {last}"


DATES: list[Rule] = [
    rule(
        rf"{_YEAR}-(?P<month>\d\d)-(?P<day>\d\d)"
        r"(?:[T ](?P<hour>[01]\d|2[0-3]):(?P<minute>[0-5]\d)"
        r"(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?(?![\w-])",
        _iso,
        "digit",
    ),
    rule(r"(?P<first>\d{1,2})/(?P<second>\d{1,2})/(?P<year>(?:19|20)\d\d|\d\d)(?![\w/])", _slashed, "digit"),
    rule(r"(?P<day>\d{1,2})\.\s?(?P<month>\d{1,2})\.(?P<year>(?:19|20)\d\d)(?!\w|\.\d)", _dotted, "digit"),
    rule(r"(?P<first>\d{1,2})/(?P<second>\d{1,2})(?![\w/])", _short, "digit", english=True),
    rule(
        rf"{_MONTH}\s{_DAY}(?:st|nd|rd|th)?(?:\s?[-–]\s?(?P<last>[12]\d|3[01]|[1-9])(?:st|nd|rd|th)?)?\b(?![:/%.]\d|%)"
        rf"(?:,?\s{_YEAR}\b)?",
        _month_first,
        "letter",
        english=True,
    ),
    rule(rf"{_DAY}(?:st|nd|rd|th)?\s(?:of\s)?{_MONTH}(?:,?\s{_YEAR}\b)?", _day_first, "digit", english=True),
    rule(rf"{_MONTH},?\s{_YEAR}\b(?!-)", _month_year, "letter", english=True),
    rule(
        rf"(?P<first>{'|'.join(_DAYS)})\.?\s?[-–]\s?(?P<last>{'|'.join(_DAYS)})\b\.?",
        _day_range,
        "letter",
        english=True,
    ),
    rule(
        r"(?P<name>Jan|Feb|Mar|Apr|Jun|Jul|Sat|Sun|Aug|Sept|Sep|Oct|Nov|Dec|Mon|Tues|Tue|Weds|Wed|Thurs|Thur|Thu|Fri)\b(?P<stop>\.?)(?![-\w])",
        _month_name,
        "letter",
        english=True,
    ),
]

TIMES: list[Rule] = [
    rule(
        r"(?P<first_hour>\d{1,2})(?:[:.](?P<first_minute>[0-5]\d))?\s?(?P<first_half>[AaPp]\.?[Mm]\.?)?"
        rf"\s?[-–—]\s?(?P<hour>\d{{1,2}})(?:[:.](?P<minute>[0-5]\d))?\s?{_HALF}",
        _time_range,
        "digit",
        english=True,
    ),
    rule(
        r"(?P<first_hour>\d{1,2}):(?P<first_minute>[0-5]\d)(?P<first_half>)\s?[-–—]\s?"
        rf"(?P<hour>\d{{1,2}}):(?P<minute>[0-5]\d)(?P<half>){_CLOCK}(?![\w:])",
        _time_range,
        "digit",
    ),
    rule(
        r"(?P<first_hour>\d{1,2})\.(?P<first_minute>[0-5]\d)(?P<first_half>)\s?[-–—]\s?"
        r"(?P<hour>\d{1,2})\.(?P<minute>[0-5]\d)(?P<half>)\sUhr(?!\w)",
        _time_range,
        "digit",
    ),
    rule(
        rf"(?P<hour>\d{{1,2}})(?:[:.](?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?)?\s?{_HALF}",
        _time,
        "digit",
        english=True,
    ),
    rule(
        r"(?P<hour>0\d|1[3-9]|2[0-4]):(?P<minute>[0-5]\d)\s?(?:hours|hrs)(?!\w)",  # "2:15 hours" are a while
        _time,
        "digit",
        english=True,
    ),
    rule(
        rf"(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?{_CLOCK}(?![\w:]|[.,]\d)",
        _time,
        "digit",
        english=True,
    ),
    rule(rf"(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d){_CLOCK}(?![\w:]|[.,]\d)", _time, "digit"),
    rule(r"(?P<hour>[01]?\d|2[0-4])\.(?P<minute>[0-5]\d)\sUhr(?!\w)", _time, "digit"),
    rule(r"(?P<hour>[01]?\d|2[0-4])\s?(?:h|Uhr)\s?(?P<minute>[0-5]\d)?(?![\w:]|[.,]\d)", _time, "digit"),
]
