"""The text of a reply, without its thoughts, and where it ends: at a stop string, wherever that is cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llm.detokenizer import Detokenizer
from llm.thoughts import Split, Thoughts


class AnswerText:
    """The text of one reply without its thoughts, growing token by token and cut at the first stop string.

    A stop string in a thought ends nothing: it is there to end what is said. It counts where it ends behind
    the text of the first `min_tokens` tokens, as in vLLM. Text that may turn out to be the beginning of one
    is held back, so what was handed out is never taken back, unless it was all a thought (`recalled`).
    """

    def __init__(
        self,
        token_bytes: Callable[[int], bytes],
        stop: Sequence[str] = (),
        min_tokens: int = 0,
        opened: tuple[str, ...] = (),
    ) -> None:
        """`opened`: the thoughts that the prompt's end has opened."""
        self._detokenizer = Detokenizer(token_bytes)
        self._thoughts = Thoughts(opened)
        self._stop = tuple(stop)
        self._min_tokens = min_tokens
        self._longest = max(map(len, self._stop), default=0)
        self._text = ""
        self._given = 0
        self._whole: list[tuple[int, int]] = []  # (tokens, characters) wherever no character is open
        self._tokens = 0
        self.stopped = False
        self.recalled = False  # the last token showed that all text before it was a thought

    @property
    def thought(self) -> bool:
        """Whether a thought was open in the last token."""
        return self._thoughts.thought

    @property
    def thinking(self) -> bool:
        """Whether the model is in a thought."""
        return self._thoughts.thinking

    @property
    def text(self) -> str:
        """The reply's text so far, without a stop string."""
        return self._text

    def push(self, token: int) -> str:
        """Take one committed token; returns the text that is now certain. Sets `stopped` at a stop string."""
        self._tokens += 1
        before = self._take(self._thoughts.push(self._detokenizer.push(token)))
        cut = self._cut(before) if self._tokens > self._min_tokens else -1
        if cut >= 0:
            self.stopped = True
            self._text = self._text[:cut]
            return self._give(len(self._text))
        self._note_whole()
        return self._give(len(self._text) - self._held_back())

    def flush(self) -> str:
        """What was held back, once the reply has ended for another reason."""
        self.recalled = False
        if not self.stopped:
            self._take(self._thoughts.flush())
            self._note_whole()
        return self._give(len(self._text))

    def kept(self) -> tuple[int, str]:
        """How many tokens lie wholly before the end, and the text's characters after those."""
        for tokens, characters in reversed(self._whole):
            if characters <= len(self._text):
                return tokens, self._text[characters:]
        return 0, self._text

    def _take(self, split: Split) -> int:
        """Add what is to be said; returns how much text there was before it."""
        self.recalled = split.recall
        if split.recall:
            self._text, self._given = "", 0
            self._whole.clear()
        before = len(self._text)
        self._text += split.text
        return before

    def _note_whole(self) -> None:
        if not self._detokenizer.pending and not self._thoughts.pending:
            self._whole.append((self._tokens, len(self._text)))

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
