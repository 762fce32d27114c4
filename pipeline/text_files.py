"""Text files that people write, with whatever editor they have; TOML among them."""

from __future__ import annotations

import codecs
import tomllib
from pathlib import Path
from typing import Any

_WIDE = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MOST_BYTES = 1 << 24
"""A device may never come to its end."""


class NotUtf8(ValueError):
    """The file is not text in UTF-8; the message names it, says what it is and what to do."""


class NotToml(ValueError):
    """The file is not valid TOML; the message names it and says where."""


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, with or without a byte-order mark; every line ends in a plain "\\n".

    Raises NotUtf8 and OSError.
    """
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise NotUtf8(f"{path} has more than {_MOST_BYTES} bytes: it is no text that a person wrote")
    if data.startswith(_WIDE) or b"\0" in data:
        raise NotUtf8(f"{path} is in UTF-16 or no text at all: save it as UTF-8")
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise NotUtf8(
            f"{path} is not in UTF-8 (byte 0x{data[error.start]:02x} in line {line}): save it as UTF-8"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_toml(path: Path) -> dict[str, Any]:
    """The values of a TOML file. Raises NotToml, NotUtf8 and OSError."""
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise NotToml(f"{path} is not valid TOML: {error}") from None
    except RecursionError:  # tomllib calls itself for every bracket
        raise NotToml(f"{path} is not valid TOML here: its values are nested too deep") from None
