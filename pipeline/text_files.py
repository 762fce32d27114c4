"""Text files that people write, with whatever editor they have."""

from __future__ import annotations

import codecs
from pathlib import Path

_WIDE = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class NotUtf8(ValueError):
    """The file is not text in UTF-8; the message names it, says what it is and what to do."""


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, with or without a byte-order mark; every line ends in a plain "\\n".

    Raises NotUtf8 and OSError.
    """
    data = path.read_bytes()
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
