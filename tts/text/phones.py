"""Telephone numbers of any country, short service numbers, cards and other digits in groups.

A run of groups is a telephone number by its form (a plus, a leading zero, an area code in brackets, a
national grouping) or, where the form could be an amount's, by the words around it. It is read digit by digit,
the groups kept apart.
"""

import re
from collections.abc import Callable
from functools import cache

from tts.text.cues import after, before, is_code, is_counted
from tts.text.lexicon import Lexicon, word_set
from tts.text.numbers import one_by_one
from tts.text.rules import Rule, rule, word_before

_MOST_DIGITS = 15
"""Of a telephone number with its country's code (ITU-T E.164)."""
_LEAST_DIGITS = 7
_LEAST_CUED = 6
_GROUP = r"(?:\(\+?\d{1,6}\)|\d{1,12})"
_BETWEEN = r"(?:[ ]|[-–./]|[ ][-–/][ ])"
_DIGITS = rf"(?P<digits>\+?[ ]?{_GROUP}(?:{_BETWEEN}{_GROUP}|(?<=\))[ ]?\d{{1,12}}|\(\d{{1,6}}\)){{0,8}})"
_EXTENSION = r"(?:,?\s?(?:ext|extension|x|\#)\.?\s?(?P<ext>\d{1,6})(?!\w))?"
_EXTENSION_WORDS = {"en": "extension", "es": "extensión", "fr": "poste", "de": "Durchwahl"}
_NUMBER = re.compile(_DIGITS + _EXTENSION, re.VERBOSE)
_STOPS_HERE = re.compile(r"(?![\w%°€£¢]|[-–.,:/]\d|-\w|[ ]?[€£%°¢])")
_MORE_DIGITS = re.compile(r"[ -]\d")
_TOUCHED = re.compile(r"[\w$€£¥][-–.,:/]$|[$€£¥#]\s?$")
_YEAR = re.compile(r"(?:19|20)\d\d")
_FREE = frozenset({"1300", "1800", "1860"})
"""What numbers free of charge begin with where no national form tells them."""

_SHAPES = frozenset(
    {
        (3, 4),  # a local number in North America
        (3, 3, 4),
        (1, 3, 3, 4),
        (4, 3, 3),  # Australian and Indian service numbers
        (4, 3, 4),
        (4, 4),  # Singapore, Hong Kong, Norway
        (5, 5),  # Indian mobiles
        (5, 6),
        (2, 4, 4),
        (3, 4, 4),
        (2, 5, 4),
        (1, 4, 4),
        (3, 2, 2, 2),
        (2, 3, 2, 2),
        (3, 3, 2, 2),
        (1, 3, 3, 2, 2),
    }
)
"""Lengths of the groups that a telephone number is known by when no word says that it is one."""

_CALL = word_set(
    "call calls calling called dial dialing dialling ring ringing phone text texting rufen ruf wählen "
    "wähle anrufen appelez appeler composez composer llame llamar llama marque marcar"
)
"""Words that a number to call follows."""
_LINES = _CALL | word_set(
    "telephone tel ph fax mobile cell cellphone hotline helpline line landline contact reach sms whatsapp "
    "number no nr reception telefon telefonnummer nummer handy durchwahl unter téléphone numéro portable "
    "teléfono número móvil fijo"
)
_NO_LINE = word_set(
    "of from by about over than nearly almost around made makes cost costs sold some up with had has "
    "have von um über de par por"
)
"""Words between such a word and an amount: ``the number of users rose from 250 000``."""
_LABELS = word_set(
    "room page step chapter section seat gate platform flight bus in since until year may june july age aged"
)
_LINE_BEHIND = re.compile(
    r",?\s(?:(?:is|was|are|ist|est|es)\s)(?:(?!of\b|for\b|in\b)[\w'-]+\s){0,4}?"
    r"(?:number|line|hotline|helpline|mobile|landline|cell|fax|phone|telephone|nummer|numéro|número)\b(?!\sof)",
    re.IGNORECASE,
)
_CALLED = re.compile(
    rf"\b(?:{'|'.join(sorted(_CALL))}|reach(?=[ ]\w+\s(?:on|at)\s))"
    r"(?:[ -](?:us|me|him|her|them|nous|nos|sie|uns)(?:\s(?:on|at|unter))?)?"
    r"(?:\s(?:le|la|au|die|el|al))?\s$",
    re.IGNORECASE,
)
"""What stands before a short number: ``call``, ``call us on``, ``composez le``."""
_LINE_HERE = re.compile(r",?\s(?:the\s)?(?:[\w-]+\s){0,3}?(?:number|line|hotline|helpline)\b", re.IGNORECASE)
_SERVICES = word_set("000 100 101 105 111 112 116 119 211 311 411 511 611 711 811 911 988 999")


class _Telephone:
    """Finds the longest run of groups at a place that is a telephone number."""

    def match(self, text: str, at: int, /) -> re.Match[str] | None:
        found = first = _NUMBER.match(text, at)
        cued = cache(lambda: first is not None and _follows_a_line(first))
        while found and sum(map(str.isdecimal, found["digits"])) >= _LEAST_CUED:
            if _is_card(found["digits"]):
                return None
            if _STOPS_HERE.match(text, found.end()) and _is_telephone(found, cued):
                return found
            last = re.search(r"[^\d+]+\d+\)?$", found["digits"])
            if not last or last.start() == 0:
                return None
            found = _NUMBER.match(text, at, at + last.start())
        return None


def _is_card(written: str) -> bool:
    groups = re.findall(r"\d+", written)
    return len(groups) > 2 and set(map(len, groups)) == {4} and written[0] != "0"


def _is_telephone(match: re.Match[str], cued: Callable[[], bool]) -> bool:
    """`cued`: whether a word like ``call`` is before the digits; the same for every length that is tried."""
    written = match["digits"]
    groups = re.findall(r"\d+", written)
    marks = set(re.findall(r"(?<=[\d)])\s?([-–./ ])\s?(?=[\d(])", written))
    total = sum(map(len, groups))
    if not _LEAST_CUED <= total <= _MOST_DIGITS + 2 or _TOUCHED.search(
        match.string[max(0, match.start() - 2) : match.start()]
    ):
        return False
    if written.count("(") != written.count(")"):
        return False
    if written.startswith("+"):
        return total >= _LEAST_DIGITS and not (_is_thousands(groups, marks) and total < 9)
    if len(groups) < 2 or (len(groups[-1]) == 1 and marks != {"-"}):
        return False
    if _is_date(groups) or (match["ext"] is None and is_counted(match.string, match.end(), surely=True)):
        return False
    if "." in marks:
        return _is_dotted_telephone(groups, marks)
    if "/" in marks and (re.search(r"/.*/", written) or len(groups[0]) < 3 or len(groups[1]) < 3):
        return False
    if total >= _LEAST_DIGITS and _has_leading_zero(groups, marks):
        return True
    return _is_by_words(match, groups, marks, cued)


def _is_by_words(match: re.Match[str], groups: list[str], marks: set[str], cued: Callable[[], bool]) -> bool:
    """What no leading zero tells apart from amounts: by a national form, or by the words beside it."""
    text, end, word = match.string, match.end(), word_before(match)
    if is_counted(text, end) or word in _LABELS or "–" in marks or all(map(_YEAR.fullmatch, groups)):
        return False
    shape = tuple(map(len, groups))
    known = sum(shape) >= _LEAST_DIGITS and (shape in _SHAPES or (groups[0] in _FREE and len(groups) > 2))
    if marks == {"-"} and len(groups) == 2 and not known:
        return False  # a range
    if _LINE_BEHIND.match(after(text, end)):
        return True
    if _is_thousands(groups, marks):
        return set(groups[1:]) != {"000"} and cued()
    if cued():
        return True
    if (
        not known
        or _MORE_DIGITS.match(text, end)
        or (marks == {"-"} and len(groups) == 2 and shape != (3, 4))
    ):
        return False
    return not _YEAR.fullmatch(groups[-1]) and not (len(word) > 3 and word.endswith("s"))


def _follows_a_line(match: re.Match[str]) -> bool:
    """Whether a word like ``call`` or ``number`` is before the digits, and no word of an amount between."""
    words = [word.lower() for word in re.findall(r"[^\W\d_]+|\d+", before(match))][-10:]
    for place in range(len(words) - 1, -1, -1):
        if words[place] in _LINES and words[place + 1 : place + 2] != ["of"]:
            near = words[place + 1 :]
            ranged = near[-1:] == ["to"] and near[-2:-1] != [] and near[-2].isdecimal()
            return not ranged and not any(word in _NO_LINE for word in near[-2:])
    return False


def _has_leading_zero(groups: list[str], marks: set[str]) -> bool:
    zeros = [group for group in groups if len(group) > 1 and group[0] == "0"]
    return bool(zeros) and not _is_thousands(groups, marks)


def _is_thousands(groups: list[str], marks: set[str]) -> bool:
    """``1 500 000``: what an amount is written like where spaces part the thousands."""
    return (
        marks <= {" "}
        and len(groups) > 1
        and len(groups[0]) <= 3
        and groups[0][0] != "0"
        and all(len(group) == 3 for group in groups[1:])
    )


def _is_date(groups: list[str]) -> bool:
    if len(groups) != 3 or tuple(map(len, groups)) not in ((2, 2, 4), (1, 2, 4), (2, 1, 4), (4, 2, 2)):
        return False
    day, month, year = groups if len(groups[2]) == 4 else groups[::-1]
    return bool(_YEAR.fullmatch(year)) and int(day) <= 31 and int(month) <= 31


def _is_dotted_telephone(groups: list[str], marks: set[str]) -> bool:
    """``01.23.45.67.89``, not the address of a machine, an amount or a version."""
    shape = tuple(map(len, groups))
    if shape in ((3, 3, 4), (1, 3, 3, 4)):
        return True
    return (
        marks == {"."}
        and len(groups) > 2
        and len(groups[0]) > 1
        and groups[0][0] == "0"
        and min(shape) > 1
        and (sum(shape) >= _LEAST_DIGITS)
    )


def _telephone(match: re.Match[str], lexicon: Lexicon) -> str:
    """Digits one by one, groups kept apart; ``800`` as callers know it."""
    words = _said(re.findall(r"\d+", match["digits"]), lexicon)
    if "+" in match["digits"]:
        words = f"{lexicon.plus} {words}"
    if match["ext"]:
        words += f", {_EXTENSION_WORDS[lexicon.code]} {one_by_one(match['ext'], lexicon.code)}"
    return words


def _said(groups: list[str], lexicon: Lexicon) -> str:
    free = lexicon.code == "en" and "800" in groups[:2] and len(groups) > 2
    return ", ".join(
        "eight hundred" if free and group == "800" else one_by_one(group, lexicon.code) for group in groups
    )


def _vanity(match: re.Match[str], lexicon: Lexicon) -> str:
    """``1-800-FLOWERS``: a number that ends in words."""
    groups = re.findall(r"\d+", match["digits"])
    return f"{_said([*groups, ''], lexicon)}{match['name'].replace('-', ' ')}"


def _groups(match: re.Match[str], lexicon: Lexicon) -> str | None:
    groups = re.findall(r"\d+", match[0])
    if " " in match[0] and all(map(_YEAR.fullmatch, groups)):
        return None
    return ", ".join(one_by_one(group, lexicon.code) for group in groups)


def _code(match: re.Match[str], lexicon: Lexicon) -> str | None:
    """A code in groups; digits that stand alone are read one after the other."""
    groups = re.findall(r"\d+", match[0])
    if not is_code(match, "".join(groups)):
        return None
    mark = " " if all(len(group) == 1 for group in groups) else ", "
    return mark.join(one_by_one(group, lexicon.code) for group in groups)


def _service(match: re.Match[str], lexicon: Lexicon) -> str | None:
    """A short number to call, ``911`` or ``36 39``, not the people who are called."""
    groups = match[0].split(" ")
    if is_counted(match.string, match.end()):
        return None
    sentence = before(match)
    front = [word.lower() for word in re.findall(r"[^\W\d_]+|\d+", sentence)]
    last = front[-1] if front else ""
    messaged = len(match[0]) > 4 and last == "to" and any(word in _CALL for word in front)
    listed = match[0] in _SERVICES and last in ("or", "and", "then", "on", "to", "is", "s")
    listed = listed and (
        any(word in _LINES or word == "emergency" for word in front)
        or bool(_LINE_HERE.match(after(match.string, match.end())))
    )
    if listed or messaged or _CALLED.search(sentence):
        return ", ".join(one_by_one(group, lexicon.code) for group in groups)
    return None


PHONES: list[Rule] = [
    Rule(_Telephone(), _telephone),
    rule(
        r"(?P<digits>1[- .]\(?8\d\d\)?(?:[- .]\d{3})?|(?:8\d\d|0[58]00|1[38]00)(?=-)|0800|1300|1800)"
        r"[- ](?P<name>[A-Z]{2,10}(?:[- ][A-Z]{2,10}){0,2})(?![\w-])",
        _vanity,
        "digit",
    ),
    rule(r"\d{1,12}(?:[ -]\d{1,12}){1,8}(?![\w%°€£¢-]|[.,:/]\d)", _code, "digit"),
    rule(r"\d{3}-\d{4}(?![\w-])", _groups, "digit"),
    rule(r"\d{1,6}(?:-\d{1,6}){2,6}(?![\w-])", _groups, "digit"),
    rule(r"\d{4}(?:[ ]\d{4}){2,4}(?![\w-])", _groups, "digit"),
    rule(r"\d{5}-\d{4}(?![\w-])", _groups, "digit"),
    rule(r"(?:\d{2}[ ]\d{2}|\d{3,6})(?![\w-]|[ ]\d|[.,:/]\d|[ ][A-Z][a-z])", _service, "digit"),
]
