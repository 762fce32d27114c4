"""Words in scripts that a voice has no sounds for: saying them would be babble."""

from __future__ import annotations

import re
import unicodedata


def in_latin(text: str) -> str:
    """`text` with blanks for the letters of words in other scripts; every other character keeps its place."""
    return re.sub(r"\S+", lambda word: word[0] if _is_latin(word[0]) else re.sub(r"\w", " ", word[0]), text)


def in_other_scripts(text: str) -> list[str]:
    """The words that `in_latin` leaves out."""
    return [word for word in text.split() if not _is_latin(word)]


def _is_latin(word: str) -> bool:
    return all(c.isascii() or unicodedata.name(c, "").startswith("LATIN") for c in word if c.isalpha())
