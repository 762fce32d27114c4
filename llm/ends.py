"""Where the text of a reply ends: stop strings, found at once, across tokens and characters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llm.detokenizer import Detokenizer


class ReplyText:
    """The text of one reply, growing token by token and cut at the first stop string.

    Text that may turn out to be the beginning of a stop string is held back, so what was handed out is never
    taken back.
    """

    def __init__(self, token_bytes: Callable[[int], bytes], stop: Sequence[str] = ()) -> None:
        self._detokenizer = Detokenizer(token_bytes)
        self._stop = tuple(stop)
        self._longest = max(map(len, self._stop), default=0)
        self._text = ""
        self._given = 0
        self._whole: list[tuple[int, int]] = []  # (tokens, characters) wherever no character is open
        self._tokens = 0
        self.stopped = False

    @property
    def text(self) -> str:
        """The reply's text so far, without a stop string."""
        return self._text

    def push(self, token: int) -> str:
        """Take one committed token; returns the text that is now certain. Sets `stopped` at a stop string."""
        self._tokens += 1
        searched = max(0, len(self._text) - self._longest + 1)
        self._text += self._detokenizer.push(token)
        cut = min((at for s in self._stop if (at := self._text.find(s, searched)) >= 0), default=-1)
        if cut >= 0:
            self.stopped = True
            self._text = self._text[:cut]
            return self._give(len(self._text))
        if not self._detokenizer.pending:
            self._whole.append((self._tokens, len(self._text)))
        return self._give(len(self._text) - self._held_back())

    def flush(self) -> str:
        """What was held back, once the reply has ended for another reason."""
        return self._give(len(self._text))

    def kept(self) -> tuple[int, str]:
        """How many tokens lie wholly before the end, and the text's characters after those."""
        for tokens, characters in reversed(self._whole):
            if characters <= len(self._text):
                return tokens, self._text[characters:]
        return 0, self._text

    def _give(self, end: int) -> str:
        given = self._text[self._given : end]
        self._given = max(self._given, end)
        return given

    def _held_back(self) -> int:
        """Length of the longest end of the text that is the beginning of a stop string."""
        for length in range(min(self._longest - 1, len(self._text)), 0, -1):
            if any(s.startswith(self._text[-length:]) for s in self._stop if length < len(s)):
                return length
        return 0
