"""Marks that are said, and the last of those that are not."""

import re
import unicodedata

from tts.text.lexicon import Lexicon
from tts.text.rules import Rule, rule

_AMPERSANDS = {"en": "and", "es": "y", "fr": "et", "de": "und"}


_MARKS: dict[str, dict[str, str]] = {
    "÷": {"en": "divided by", "es": "entre", "fr": "divisé par", "de": "geteilt durch"},
    "±": {"en": "plus or minus", "es": "más menos", "fr": "plus ou moins", "de": "plus minus"},
    "≈": {"en": "about", "es": "unos", "fr": "environ", "de": "etwa"},
    "≤": {"en": "at most", "es": "como máximo", "fr": "au plus", "de": "höchstens"},
    "≥": {"en": "at least", "es": "como mínimo", "fr": "au moins", "de": "mindestens"},
    "<": {"en": "less than", "es": "menor que", "fr": "inférieur à", "de": "kleiner als"},
    ">": {"en": "greater than", "es": "mayor que", "fr": "supérieur à", "de": "größer als"},
    "√": {"en": "square root of", "es": "raíz de", "fr": "racine de", "de": "Wurzel aus"},
    "§": {"en": "section", "es": "artículo", "fr": "paragraphe", "de": "Paragraf"},
    "π": {"en": "pi", "es": "pi", "fr": "pi", "de": "Pi"},
    "∞": {"en": "infinity", "es": "infinito", "fr": "infini", "de": "unendlich"},
}


def _mark(match: re.Match[str], lexicon: Lexicon) -> str:
    return f" {_MARKS[match[0]][lexicon.code]} "


def _operator(match: re.Match[str], lexicon: Lexicon) -> str:
    words = {"+": lexicon.plus, "=": lexicon.equals, "*": lexicon.times, "×": lexicon.times, "@": lexicon.at}
    words |= {"%": lexicon.percent, "°": lexicon.degrees, "&": _AMPERSANDS[lexicon.code]}
    return f" {words[match['mark'].strip()]} "


def _about(match: re.Match[str], lexicon: Lexicon) -> str:
    return _MARKS["≈"][lexicon.code] + " "


def _alternatives(match: re.Match[str], lexicon: Lexicon) -> str:
    """``red/blue`` is red or blue; capitals (``TCP/IP``) are only set apart."""
    joint = {"en": " or ", "es": " o ", "fr": " ou ", "de": " oder "}[lexicon.code]
    return joint.join(match[0].split("/"))


def _named(match: re.Match[str], lexicon: Lexicon) -> str:
    return {"C++": "C plus plus", "c++": "C plus plus", "C#": "C sharp", "F#": "F sharp", ".NET": "dot net"}[
        match[0]
    ]


def _number_sign(match: re.Match[str], lexicon: Lexicon) -> str:
    return f"{lexicon.number} "


def _star(match: re.Match[str], lexicon: Lexicon) -> str:
    return "star "


def _pound(match: re.Match[str], lexicon: Lexicon) -> str:
    return "pound "


def _hashtag(match: re.Match[str], lexicon: Lexicon) -> str:
    return f"hashtag {match['word']}"


def _snake(match: re.Match[str], lexicon: Lexicon) -> str:
    return " ".join(match[0].split("_"))


def _pause(match: re.Match[str], lexicon: Lexicon) -> str:
    return ", "


def _nothing(match: re.Match[str], lexicon: Lexicon) -> str | None:
    """A space for a mark that says nothing; punctuation of other scripts stays."""
    mark = match[0]
    return None if not mark.isascii() and unicodedata.category(mark)[0] in "PM" else " "


SYMBOLS: list[Rule] = [
    rule(r"[Cc]\+\+|[CF]\#(?!\w)", _named, "letter"),
    rule(r"\.NET\b", _named, "mark"),
    rule(r"[^\W\d_]{1,40}(?:_[^\W_]{1,40}){1,12}", _snake, "letter"),
    rule(r"[A-Za-zà-ÿ][a-zà-ÿ]{0,20}/[a-zà-ÿ]{1,20}(?![\w/])", _alternatives, "letter"),
    rule(r"\#(?=[A-Z]{0,6}-?\d)", _number_sign, "mark"),
    rule(r"(?<=[^\W\d_][ ])>(?=[ ][^\W\d_])", _pause, "mark"),
    rule(r"\*(?=\d)(?<!\d\*)", _star, "mark", english=True),
    rule(r"\*(?<=[^\W\d_]{2}\s\*)(?=[\s.,;:!?)\"']|$)", _star, "mark", english=True),
    rule(r"\#(?<=\s\#)(?=[\s.,;:!?)\"']|$)", _pound, "mark", english=True),
    rule(r"\#(?P<word>[^\W\d_]\w{0,40})", _hashtag, "mark", english=True),
    rule(r"[~≈]\s?(?=[\d$€£])", _about, "mark"),
    rule(rf"[{''.join(_MARKS)}]", _mark),
    rule(r"\s?(?P<mark>[+=*×@%°&])", _operator, "mark"),
    rule(r"[()\[\]{}|]|(?<=\s)[•‣◦▪·](?=\s)|(?<!\S)[-–](?!\S)", _pause, "mark"),
    rule(r"['\u2019](?![^\W_])(?<![^\W_]')", _nothing, "mark"),
    rule(r"[^\w\s'\u2019\-]", _nothing, "mark"),
]
