"""E-mail addresses, web addresses, files and paths."""

import re

from tts.text.codes import letters, spell_mixed
from tts.text.lexicon import Lexicon, word_set
from tts.text.numbers import one_by_one
from tts.text.rules import Rule, rule

_SPELLED_ENDINGS = word_set(
    "us uk io ai tv de fr es it nl eu au ca ch jp cn br ru se fi dk pl ie nz za kr uy pt cz gr hu fm "
    "gg ly id hk"
)
_PLAIN_ENDINGS = (
    "com|org|net|edu|gov|mil|int|info|biz|app|dev|shop|store|online|tech|cloud|site|blog|live|news|xyz"
)
_ENDINGS = rf"(?:{_PLAIN_ENDINGS}|{'|'.join(sorted(_SPELLED_ENDINGS))}|co|me|in|at|be|no|so|cc|to)"
_FILE_TYPES = (
    "pdf|docx?|xlsx?|pptx?|txt|csv|json|ya?ml|toml|xml|html?|css|jsx?|tsx?|py|rb|go|rs|java|cpp|sh|exe|zip|gz|tar"
    "|png|jpe?g|gif|svg|mp[34]|wav|mov|log|ini|conf|cfg|md|sql|bat|dmg|iso"
)
_SAID_TYPES = word_set("exe zip tar gif log ini java conf com wav go sh bat json")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_MOST_PATH_PARTS = 3


_NAMES = re.compile(r"[^\W_]{1,80}|[._+\-/~@:=&%#]")


def _spelled(text: str, lexicon: Lexicon) -> str:
    """An address with its marks in words."""
    marks = {
        ".": lexicon.dot,
        "_": lexicon.underscore,
        "-": lexicon.dash,
        "+": lexicon.plus,
        "/": lexicon.slash,
        "@": lexicon.at,
        "~": "tilde",
        ":": "colon" if lexicon.code == "en" else "",
        "=": lexicon.equals,
    }
    return " ".join(
        [
            said
            for part in _NAMES.findall(text)
            if (said := spell_mixed(part, lexicon) if part[0].isalnum() else marks.get(part, ""))
        ]
    )


def host(name: str, lexicon: Lexicon) -> str:
    """A domain name in words, short country endings spelled."""
    labels = name.lower().split(".")
    said = [
        letters(label.upper(), lexicon)
        if place and label.lower() in _SPELLED_ENDINGS
        else _spelled(label, lexicon)
        for place, label in enumerate(labels)
    ]
    return f" {lexicon.dot} ".join(said)


def _email(match: re.Match[str], lexicon: Lexicon) -> str:
    return f"{_spelled(match['local'].lower(), lexicon)} {lexicon.at} {host(match['host'], lexicon)}"


def _url(match: re.Match[str], lexicon: Lexicon) -> str:
    """The host and a short path; scheme, ``www``, query and fragment are not said."""
    words = host(match["host"], lexicon)
    if match["port"]:
        words += f" port {one_by_one(match['port'], lexicon.code)}"
    path = re.split(r"[?#]", match["path"] or "", maxsplit=1)[0].strip("/")
    segments = path.split("/") if path else []
    if len(segments) <= _MOST_PATH_PARTS and len(path) <= 60:
        parts = [part for segment in segments for part in (lexicon.slash, _spelled(segment, lexicon)) if part]
        words = " ".join([words, *parts])
    return words


def _file(match: re.Match[str], lexicon: Lexicon) -> str:
    kind = match["kind"]
    said = kind.lower() if kind.lower() in _SAID_TYPES else letters(kind.upper(), lexicon)
    return f"{_spelled(match['name'], lexicon)} {lexicon.dot} {said}"


def _path(match: re.Match[str], lexicon: Lexicon) -> str:
    return _spelled(match[0].replace("\\", "/"), lexicon)


CONTACT: list[Rule] = [
    rule(
        rf"(?:mailto:)?(?P<local>[A-Za-z0-9][\w.+%-]{{0,63}})@(?P<host>{_LABEL}(?:\.{_LABEL}){{1,5}})",
        _email,
    ),
    rule(
        rf"(?:https?|ftp|wss?)://(?:www\.)?(?P<host>{_LABEL}(?:\.{_LABEL}){{0,6}})(?::(?P<port>\d{{1,5}}))?"
        r"(?P<path>[/?\#](?:[^\s<>\"']{0,500}[^\s<>\"'.,;:!?)\]])?)?",
        _url,
        "letter",
    ),
    rule(
        rf"(?:www\.(?P<host>{_LABEL}(?:\.{_LABEL}){{1,5}}))(?P<port>)"
        r"(?P<path>[/?\#](?:[^\s<>\"']{0,500}[^\s<>\"'.,;:!?)\]])?)?",
        _url,
        "letter",
    ),
    rule(
        rf"(?P<host>(?:{_LABEL}\.){{1,4}}{_ENDINGS})\b(?![.@-]\w)(?::(?P<port>\d{{1,5}}))?"
        r"(?P<path>/(?:[^\s<>\"']{0,500}[^\s<>\"'.,;:!?)\]])?)?",
        _url,
        flags=re.IGNORECASE,
    ),
    rule(
        rf"(?P<name>[A-Za-z0-9_][\w.-]{{0,60}})\.(?P<kind>{_FILE_TYPES})\b(?!\.\w)",
        _file,
        flags=re.IGNORECASE,
    ),
    rule(r"(?:~|\.{1,2})?(?:/[\w.+-]{0,60}[\w+-]){2,12}/?(?!\w)|~/[\w.-]{0,60}\w", _path, "mark"),
    rule(r"/(?:etc|usr|var|home|tmp|opt|bin|dev)\b", _path, "mark"),
    rule(r"[A-Za-z]:\\[\w.+\\-]{0,120}\w", _path, "letter"),
]
