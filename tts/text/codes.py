"""Letters and digits that are no word: order numbers, spelled names, acronyms with stops, model names."""

import re
from collections.abc import Sequence

from tts.text.abbreviations import WITHOUT_STOP
from tts.text.lexicon import Lexicon, word_set
from tts.text.numbers import cardinal, integer, one_by_one
from tts.text.rules import Rule, ends_sentence, rule

_SAID_AS_WORDS = word_set("COVID SARS MERS NASA NATO UNESCO OPEC RAM ROM CAT DOT PIN SIM WIFI LASER")
_RUNS = re.compile(r"[^\W\d_]+|\d+")
_VOWEL = re.compile(r"[aeiouyà-öø-ü]", re.IGNORECASE)
_KNOWN_STOPS = {
    "U.S.": "US",
    "U.S.A.": "USA",
    "U.K.": "UK",
    "E.U.": "EU",
    "U.N.": "UN",
    "D.C.": "DC",
    "L.A.": "Los Angeles",
    "N.Y.": "New York",
    "P.O.": "PO",
    "P.S.": "PS",
    "I.D.": "ID",
    "A.D.": "AD",
    "B.C.": "BC",
    "T.V.": "TV",
    "C.E.O.": "CEO",
    "F.B.I.": "FBI",
    "C.I.A.": "CIA",
    "Q.A.": "QA",
    "V.I.P.": "VIP",
    "R.S.V.P.": "RSVP",
    "D.J.": "DJ",
    "P.C.": "PC",
}


def letters(text: str) -> str:
    """Letters one by one; see :func:`in_a_row`."""
    return in_a_row(text)


def in_a_row(said: Sequence[str]) -> str:
    """Parts said one after the other, a lone ``A``, which reads as the article, joined to the next."""
    words = ""
    for part in said:
        joint = "-" if words.endswith("A") and words[-2:-1] in ("", " ", "-") else " "
        words += f"{joint if words else ''}{part}"
    return words


def _closed(words: str, match: re.Match[str]) -> str:
    """A last ``A`` with a comma when a word follows."""
    following = match.string[match.end() : match.end() + 2]
    return f"{words}," if words.endswith((" A", " a")) and following.lstrip()[:1].isalnum() else words


def spell_mixed(text: str, lexicon: Lexicon) -> str:
    """Letters and digits without marks: letters as a word when they can be said, digits one by one."""
    said = []
    for run in _RUNS.findall(text):
        if run.isdigit():
            said.append(one_by_one(run, lexicon.code))
        elif (
            len(run) > 1
            and _VOWEL.search(run)
            and run not in WITHOUT_STOP
            and not (run.isupper() and len(run) < 4)
        ):
            said.append(run)
        else:
            said.append(letters(run.upper()) if run.isascii() else run)
    return in_a_row(said)


def _code(match: re.Match[str], lexicon: Lexicon) -> str | None:
    """Capitals and digits: spelled, but a short number behind a letter or a known word is a number."""
    text = match[0]
    has_letter = any(map(str.isalpha, text))
    if not has_letter or not any(map(str.isdigit, text)):
        return None
    runs = _RUNS.findall(text)
    if len(runs) == 2 and len(runs[1]) <= 2 and runs[1].isdigit() and runs[1][0] != "0":
        word, count = runs
        if word in _SAID_AS_WORDS:
            return f"{word} {cardinal(int(count), lexicon.code)}"
        if len(word) == 1 or len(count) == 1:
            return in_a_row([letters(word), cardinal(int(count), lexicon.code)])
    if len(runs) == 2 and runs[0].isdigit() and len(runs[0]) <= 3 and len(runs[1]) == 1:
        return _closed(f"{integer(runs[0], lexicon.code)} {runs[1]}", match)
    groups = [
        in_a_row([letters(r) if r.isalpha() else one_by_one(r, lexicon.code) for r in _RUNS.findall(group)])
        for group in re.split(r"[-/_.]", text)
        if group
    ]
    return _closed(", ".join(groups).replace(",,", ","), match)


def _spaced(match: re.Match[str], lexicon: Lexicon) -> str | None:
    """``A B 1 2 3``: stays letters and digits."""
    items = match[0].split(" ")
    capitals = sum(map(str.isalpha, items))
    if not capitals or (len(items) == 2 and capitals < 2):
        return None
    said = [item if item.isalpha() else cardinal(int(item), lexicon.code) for item in items]
    return _closed(in_a_row(said), match)


def _spelled_name(match: re.Match[str], lexicon: Lexicon) -> str:
    return _closed(letters("".join(re.findall(r"[^\W\d_]", match[0]))), match)


def _stopped(match: re.Match[str], lexicon: Lexicon) -> str:
    """``U.S.``, ``J.R.R.``: letters without their stops; the last one stays where it ends the sentence."""
    text = match[0]
    full = text if text.endswith(".") else f"{text}."
    words = _KNOWN_STOPS.get(full.upper()) or letters(text.replace(".", ""))
    at_end = not match.string[match.end() :].strip("\"') ")
    return f"{words}." if text.endswith(".") and at_end else _closed(words, match)


def _degree(match: re.Match[str], lexicon: Lexicon) -> str:
    said = {
        "ph.d": "PhD",
        "m.d": "MD",
        "b.sc": "BSc",
        "m.sc": "MSc",
        "ll.b": "LLB",
        "ll.m": "LLM",
        "ed.d": "EdD",
    }
    words = said[match["name"].lower()]
    return f"{words}." if match["stop"] and ends_sentence(match) else words


def _mixed(match: re.Match[str], lexicon: Lexicon) -> str | None:
    """Small letters and digits in one word (``abc123``); a short number at the end (``iPhone15``) is one."""
    text = match[0]
    runs = _RUNS.findall(text)
    if len(runs) < 2 or not any(map(str.isdigit, text)):
        return None
    if len(runs) == 2 and runs[1].isdigit() and len(runs[1]) <= 2 and runs[1][0] != "0" and len(runs[0]) > 3:
        return f"{runs[0]} {cardinal(int(runs[1]), lexicon.code)}"
    return _closed(in_a_row([spell_mixed(run, lexicon) for run in runs]), match)


def _as_in(match: re.Match[str], lexicon: Lexicon) -> str:
    return "A,"


def _all_letters(match: re.Match[str], lexicon: Lexicon) -> str:
    return " and ".join(letters(part) for part in match[0].split("&"))


CODES: list[Rule] = [
    rule(r"[A-Z]{1,3}&[A-Z]{1,3}(?![\w&])", _all_letters, "letter"),
    rule(r"[A-Z0-9](?:[ ][A-Z0-9]){1,40}(?![\w'&@$€£%]|[.,:-]\d|[-/]\w)", _spaced),
    rule(r"[A-Z](?:-[A-Z]){2,40}(?![\w-])", _spelled_name, "letter"),
    rule(r"[A-Z]{1,12}\d{1,12}(?:[A-Z0-9-]{0,30}[A-Z0-9])?(?![\w-])", _code, "letter"),
    rule(r"[A-Z]{1,12}[-/]\d[A-Z0-9-]{0,30}(?<!-)(?![\w-])", _code, "letter"),
    rule(r"[A-Z0-9]{1,12}(?:-[A-Z0-9]{1,12}){1,6}(?![\w-])", _code),
    rule(r"\d{1,12}[A-Z]{1,4}(?:\d[A-Z0-9-]{0,30}(?<!-))?(?![\w-])", _code, "digit"),
    rule(
        r"(?P<name>[Pp][Hh]\.[Dd]|M\.D|[BM]\.Sc|LL\.[BM]|Ed\.D)(?P<stop>\.?)(?!\w)",
        _degree,
        "letter",
        english=True,
    ),
    rule(r"(?:[A-Z]\.){2,12}(?![\w])|(?:[A-Z]\.){1,11}[A-Z](?![\w.'])", _stopped, "letter", english=True),
    rule(r"(?=[^\W_]{0,40}\d)(?=[^\W_]{0,40}[a-z])[^\W_]{2,60}(?!\w)", _mixed),
    rule(r"A(?=[ ](?:as[ ]in|for[ ][A-Z])\b)", _as_in, "letter", english=True),
]
