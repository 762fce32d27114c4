"""Ids to text as they come, never half a character."""

from __future__ import annotations

import codecs
from collections.abc import Callable


class Detokenizer:
    """An incremental byte-level decoder: what `push` returned never changes and never splits a character.

    The pieces joined equal the bytes of all ids decoded as UTF-8 with U+FFFD for what is not UTF-8, less an
    incomplete character at the end.
    """

    def __init__(self, token_bytes: Callable[[int], bytes]) -> None:
        self._token_bytes = token_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token: int) -> str:
        """The characters that this token completes; often one word, sometimes nothing yet."""
        return self._decoder.decode(self._token_bytes(token))

    @property
    def pending(self) -> bool:
        """Whether the last token ended inside a character."""
        return bool(self._decoder.getstate()[0])
