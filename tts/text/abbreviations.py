"""English abbreviations and Roman numerals, said in full."""

import re

from tts.text.lexicon import Lexicon, word_set
from tts.text.numbers import cardinal, ordinal
from tts.text.rules import Rule, ends_sentence, rule, word_after

_BEFORE_NAMES = {
    "Mr": "Mister",
    "Mrs": "Missus",
    "Ms": "Miz",
    "Mx": "Mix",
    "Dr": "Doctor",
    "Prof": "Professor",
    "Gen": "General",
    "Col": "Colonel",
    "Capt": "Captain",
    "Lt": "Lieutenant",
    "Sgt": "Sergeant",
    "Maj": "Major",
    "Cpl": "Corporal",
    "Rev": "Reverend",
    "Sen": "Senator",
    "Rep": "Representative",
    "Gov": "Governor",
    "Pres": "President",
    "Hon": "Honorable",
    "St": "Saint",
    "Mt": "Mount",
    "Ft": "Fort",
}
_STREETS = {
    "St": "Street",
    "Ave": "Avenue",
    "Blvd": "Boulevard",
    "Rd": "Road",
    "Ln": "Lane",
    "Dr": "Drive",
    "Ct": "Court",
    "Pl": "Place",
    "Sq": "Square",
    "Hwy": "Highway",
    "Pkwy": "Parkway",
    "Cir": "Circle",
    "Ter": "Terrace",
}
_WITH_STOP = {
    "etc": "et cetera",
    "vs": "versus",
    "e.g": "for example",
    "i.e": "that is",
    "a.k.a": "also known as",
    "approx": "approximately",
    "dept": "department",
    "Dept": "Department",
    "apt": "apartment",
    "Apt": "Apartment",
    "Bldg": "Building",
    "Ste": "Suite",
    "Fl": "Floor",
    "est": "estimated",
    "Est": "Established",
    "avg": "average",
    "max": "maximum",
    "Max": "Maximum",
    "min": "minimum",
    "Min": "Minimum",
    "misc": "miscellaneous",
    "incl": "including",
    "excl": "excluding",
    "esp": "especially",
    "tel": "telephone",
    "Tel": "Telephone",
    "temp": "temperature",
    "govt": "government",
    "Govt": "Government",
    "assn": "association",
    "Assn": "Association",
    "mgr": "manager",
    "Mgr": "Manager",
    "qty": "quantity",
    "Qty": "Quantity",
    "amt": "amount",
    "acct": "account",
    "Acct": "Account",
    "appt": "appointment",
    "Appt": "Appointment",
    "addr": "address",
    "cont": "continued",
    "viz": "namely",
    "P.O": "PO",
    "cf": "compare",
    "Inc": "Incorporated",
    "Corp": "Corporation",
    "Ltd": "Limited",
    "Co": "Company",
    "Bros": "Brothers",
    "Jr": "Junior",
    "Sr": "Senior",
    "Esq": "Esquire",
    "Univ": "University",
    "Intl": "International",
    "yrs": "years",
    "hrs": "hours",
    "mins": "minutes",
    "secs": "seconds",
    "lbs": "pounds",
}
_AFTER_STREETS = frozenset({"n", "s", "e", "w", "nw", "ne", "sw", "se", "apt", "suite", "ste", "unit", "fl"})
_POINT_FORWARD = frozenset({"vs", "e.g", "i.e", "approx", "viz", "cf", "incl", "excl", "esp", "P.O"})
_WITHOUT_STOP = {
    "vs": "versus",
    "etc": "et cetera",
    "approx": "approximately",
    "w/o": "without",
    "c/o": "care of",
    "n/a": "not applicable",
    "N/A": "not applicable",
    "b/c": "because",
    "and/or": "and or",
    "aka": "also known as",
    "km/h": "kilometers per hour",
    "mph": "miles per hour",
    "Jr": "Junior",
    "Sr": "Senior",
    "Mr": "Mister",
    "Mrs": "Missus",
    "Ms": "Miz",
    "Dr": "Doctor",
    "Inc": "Incorporated",
    "Corp": "Corporation",
    "Ltd": "Limited",
    "Ave": "Avenue",
    "Blvd": "Boulevard",
    "dept": "department",
    "appt": "appointment",
    "govt": "government",
    "qty": "quantity",
}
_BEFORE_NUMBERS = {
    "no": "number",
    "nos": "numbers",
    "n°": "number",
    "nº": "number",
    "№": "number",
    "p": "page",
    "pp": "pages",
    "pg": "page",
    "ch": "chapter",
    "chap": "chapter",
    "fig": "figure",
    "figs": "figures",
    "eq": "equation",
    "sec": "section",
    "art": "article",
    "vol": "volume",
    "ext": "extension",
    "apt": "apartment",
    "ste": "suite",
    "rm": "room",
    "ca": "circa",
    "rte": "route",
}
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


WITHOUT_STOP = frozenset(_WITHOUT_STOP)
"""Abbreviations that are said in full wherever they stand."""


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
    if name in _STREETS and _follows_a_name(match):
        return None
    return _BEFORE_NAMES[name] + " "


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
    return _STREETS[match["name"]] + ("" if onward else _end(match))


def _with_stop(match: re.Match[str], lexicon: Lexicon) -> str:
    return _WITH_STOP[match["name"]] + _end(match)


def _without_stop(match: re.Match[str], lexicon: Lexicon) -> str:
    return _WITHOUT_STOP[match["name"]] if match["name"] else "with "


def _before_number(match: re.Match[str], lexicon: Lexicon) -> str:
    return _BEFORE_NUMBERS[match["name"].lower()] + " "


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
        r"|[Cc]a|[Rr]te)(?:\.[ ]?|(?<=[°º№])[ ]?)\#?(?=\d)",
        _before_number,
        english=True,
    ),
    rule(rf"(?P<name>{_alternatives(_BEFORE_NAMES)})\.\s?(?=[A-Z])", _title, "letter", english=True),
    rule(rf"(?P<name>{_alternatives(_STREETS)})\b(?P<stop>\.?)(?!\w)", _street, "letter", english=True),
    rule(rf"(?P<name>{_alternatives(_WITH_STOP)})(?P<stop>\.)(?!\w)", _with_stop, "letter", english=True),
    rule(
        rf"(?P<name>{_alternatives(_WITHOUT_STOP)})(?<!/)(?:\.(?=[ ](?:[a-z]|&)))?(?![\w/]|\.\w)|w/",
        _without_stop,
        "letter",
        english=True,
    ),
    rule(rf"(?P<part>{_PARTS})\s{_ROMAN_DIGITS}", _numbered_part, "letter", english=True),
    rule(rf"(?P<name>[A-Z][a-z]{{2,12}})\s(?=[VX]|I[VIX]){_ROMAN_DIGITS}", _ruler, "letter", english=True),
]
