"""Letters and digits that are no word: order numbers, spelled names, acronyms with stops, model names."""

import re

from tts.text.abbreviation_words import WITHOUT_STOP
from tts.text.lexicon import Lexicon, word_set
from tts.text.numbers import cardinal, integer, one_by_one
from tts.text.rules import Rule, ends_sentence, rule, word_before

_SAID_AS_WORDS = word_set("COVID SARS MERS NASA NATO UNESCO OPEC RAM ROM CAT DOT PIN SIM WIFI LASER")
_LETTERED = word_set(
    "vitamin plan option grade section part group team type gate terminal building class hepatitis letter"
    " choice row level appendix answer schedule"
)
_RUNS = re.compile(r"[^\W\d_]+|\d+")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+")
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


def letters(text: str, lexicon: Lexicon) -> str:
    """Letters one by one. English voices read a lone ``A`` as the article, so it is written as it sounds."""
    return " ".join("eigh" if letter == "A" and lexicon.code == "en" else letter for letter in text)


def spell_mixed(text: str, lexicon: Lexicon) -> str:
    """Letters and digits without marks: letters as a word when they can be said, digits one by one."""
    said = []
    for run in _RUNS.findall(text):
        if run.isdecimal():
            said.append(one_by_one(run, lexicon.code))
        elif (
            len(run) > 1
            and _VOWEL.search(run)
            and run not in WITHOUT_STOP
            and not (run.isupper() and len(run) < 4)
        ):
            said.append(run)
        else:
            said.append(letters(run.upper(), lexicon) if run.isascii() else run)
    return " ".join(said)


def _code(match: re.Match[str], lexicon: Lexicon) -> str | None:
    """Capitals and digits: spelled, but a short number behind a letter or a known word is a number."""
    text = match[0]
    has_letter = any(map(str.isalpha, text))
    if not has_letter or not any(map(str.isdecimal, text)):
        return None
    runs = _RUNS.findall(text)
    if len(runs) == 2 and len(runs[1]) <= 2 and runs[1].isdecimal() and runs[1][0] != "0":
        word, count = runs
        if word in _SAID_AS_WORDS:
            return f"{word} {cardinal(int(count), lexicon.code)}"
        if len(word) == 1 or len(count) == 1:
            return f"{letters(word, lexicon)} {cardinal(int(count), lexicon.code)}"
    if len(runs) == 2 and runs[0].isdecimal() and len(runs[0]) <= 3 and len(runs[1]) == 1:
        return f"{integer(runs[0], lexicon.code)} {letters(runs[1], lexicon)}"
    groups = [
        " ".join(
            letters(run, lexicon) if run.isalpha() else one_by_one(run, lexicon.code)
            for run in _RUNS.findall(group)
        )
        for group in re.split(r"[-/_.]", text)
        if group
    ]
    return ", ".join(groups)


def _spaced(match: re.Match[str], lexicon: Lexicon) -> str | None:
    """``A B 1 2 3``: stays letters and digits."""
    items = match[0].split(" ")
    capitals = sum(map(str.isalpha, items))
    if not capitals or (len(items) == 2 and capitals < 2):
        return None
    return " ".join(
        letters(item, lexicon) if item.isalpha() else cardinal(int(item), lexicon.code) for item in items
    )


def _spelled_name(match: re.Match[str], lexicon: Lexicon) -> str:
    return letters(match[0].replace("-", ""), lexicon)


def _stopped(match: re.Match[str], lexicon: Lexicon) -> str:
    """``U.S.``, ``J.R.R.``: letters without their stops; the last one stays where it ends the sentence."""
    text = match[0]
    full = text if text.endswith(".") else f"{text}."
    words = _KNOWN_STOPS.get(full.upper()) or letters(text.replace(".", ""), lexicon)
    at_end = not match.string[match.end() :].strip("\"') ")
    return f"{words}." if text.endswith(".") and at_end else words


def _degree(match: re.Match[str], lexicon: Lexicon) -> str:
    words = match["name"].replace(".", "")
    return f"{words}." if match["stop"] and ends_sentence(match) else words


def _mixed(match: re.Match[str], lexicon: Lexicon) -> str | None:
    """Small letters and digits in one word (``abc123``); a short number at the end (``iPhone15``) is one."""
    text = match[0]
    runs = _RUNS.findall(text)
    if len(runs) < 2 or not any(map(str.isdecimal, text)):
        return None
    if (
        len(runs) == 2
        and runs[1].isdecimal()
        and len(runs[1]) <= 2
        and runs[1][0] != "0"
        and len(runs[0]) > 3
    ):
        return f"{runs[0]} {cardinal(int(runs[1]), lexicon.code)}"
    return spell_mixed(text, lexicon)


def _letter_a(match: re.Match[str], lexicon: Lexicon) -> str | None:
    """An ``A`` that is no article: before a mark, beside another letter, or behind what letters label."""
    return letters("A", lexicon) if match["free"] is not None or word_before(match) in _LETTERED else None


def _initial(match: re.Match[str], lexicon: Lexicon) -> str | None:
    """``J. Smith``, ``George W. Hall``: the stop of an initial is not said."""
    before = match.string[max(0, match.start() - 30) : match.start()].rstrip().rpartition(" ")[2]
    named = not before or (before[0].isupper() and before.lower() not in _LETTERED)
    return letters(match[0][0], lexicon) if named else None


def _flight(match: re.Match[str], lexicon: Lexicon) -> str | None:
    if word_before(match) != "flight":
        return None
    return f"{letters(match['line'], lexicon)} {one_by_one(match['digits'], lexicon.code)}"


def _all_letters(match: re.Match[str], lexicon: Lexicon) -> str:
    return " and ".join(letters(part, lexicon) for part in match[0].split("&"))


def _versions(match: re.Match[str], lexicon: Lexicon) -> str | None:
    if lexicon.decimal_comma and not match["v"] and _THOUSANDS.fullmatch(match["parts"]):
        return None
    prefix = "version " if match["v"] and lexicon.code == "en" else ""
    point = "point" if lexicon.code == "en" else lexicon.dot
    said = [integer(part, lexicon.code) for part in match["parts"].split(".")]
    return prefix + f" {point} ".join(said)


def _address(match: re.Match[str], lexicon: Lexicon) -> str:
    octets = [one_by_one(octet, lexicon.code) for octet in match["parts"].split(".")]
    port = f" port {one_by_one(match['port'], lexicon.code)}" if match["port"] else ""
    return f" {lexicon.dot} ".join(octets) + port


VERSIONS: list[Rule] = [
    rule(r"(?P<parts>\d{1,3}(?:\.\d{1,3}){3})(?::(?P<port>\d{1,5}))?(?![\w]|\.\d)", _address, "digit"),
    rule(r"(?P<v>[vV]\.?)?(?P<parts>\d{1,4}(?:\.\d{1,4}){2,4})(?!\w|\.\d)", _versions),
    rule(r"(?P<v>[vV]\.?)(?P<parts>\d{1,4}(?:\.\d{1,4})?)(?!\w|\.\d)", _versions, "letter", english=True),
]

CODES: list[Rule] = [
    rule(r"[A-Z]{1,3}&[A-Z]{1,3}(?![\w&])", _all_letters, "letter"),
    rule(r"[A-Z0-9](?:[ ][A-Z0-9]){1,40}(?![\w'&@$€£%]|[.,:-]\d|[-/]\w)", _spaced),
    rule(r"[A-HJ-Z]\.(?=[ ](?:[A-Z]\.[ ]){0,3}[A-Z][^\W\d_])", _initial, "letter", english=True),
    rule(r"(?P<line>[A-Z]{2})[ ](?P<digits>\d{1,4})(?!\w)", _flight, "letter", english=True),
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
    rule(
        r"A(?![\w'&-]|\.\w)"
        r"(?P<free>(?=[ ](?:as[ ]in|(?:and|or|to|through)[ ][B-Z])\b|[,;:!?)\"]|[ ]?$|\.(?:\s|$)))?",
        _letter_a,
        "letter",
        english=True,
    ),
]
