"""Text for terminals and pipes of any encoding: what one cannot show is replaced by something alike."""

from __future__ import annotations

import codecs
import sys
import unicodedata
from io import TextIOWrapper

_LIKENESSES = str.maketrans(
    {
        "█": "#",
        "▒": ":",
        "✓": "+",
        "✗": "x",
        "…": "...",
        "⏎": "\\n",
        "–": "-",
        "—": "-",
        "‘": "'",
        "’": "'",
        "“": '"',
        "”": '"',
        "•": "*",
        "→": "->",
        "×": "x",
        "\u00a0": " ",
    }
)
_ERRORS = "rejoinder.likeness"


def likeness(text: str) -> str:
    """In ASCII: the marks that we print as marks, letters without their accents, the rest as `?`."""
    plain = unicodedata.normalize("NFKD", text.translate(_LIKENESSES))
    kept = "".join(mark for mark in plain if not unicodedata.combining(mark))
    return "".join(mark if mark.isascii() else _unknown(mark) for mark in kept)


def show_on_any_terminal() -> None:
    """Let standard output and standard error never fail for what their encoding lacks."""
    codecs.register_error(_ERRORS, _replace)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # none where the stream was closed before the start
            stream.reconfigure(errors=_ERRORS)


def is_unicode(stream: object) -> bool:
    """Whether the stream can be written any text."""
    return (getattr(stream, "encoding", None) or "utf-8").lower().startswith("utf")


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return likeness(error.object[error.start : error.end]), error.end


def _unknown(mark: str) -> str:
    """Of braille, in which a spinner turns, a dot."""
    return "." if 0x2800 <= ord(mark) < 0x2900 else "?"
