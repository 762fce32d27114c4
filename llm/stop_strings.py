"""Stop strings: where the text of a reply ends, found at once, across tokens and characters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llm.detokenizer import Detokenizer


class StopStringFilter:
    """The text of one reply, growing token by token and cut at the first stop string.

    A stop string counts where it ends behind the text of the first `min_tokens` tokens, as in vLLM. Text that
    may turn out to be the beginning of one is held back, so what was handed out is never taken back.
    """

    def __init__(
        self, token_bytes: Callable[[int], bytes], stop: Sequence[str] = (), min_tokens: int = 0
    ) -> None:
        self._detokenizer = Detokenizer(token_bytes)
        self._stop = tuple(stop)
        self._min_tokens = min_tokens
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
        before = len(self._text)
        self._text += self._detokenizer.push(token)
        cut = self._cut(before) if self._tokens > self._min_tokens else -1
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

    def _cut(self, before: int) -> int:
        """Where the first of the stop strings begins that end behind the first `before` characters, or -1."""
        found = (self._text.find(s, max(0, before - len(s) + 1)) for s in self._stop)
        return min((at for at in found if at >= 0), default=-1)

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
