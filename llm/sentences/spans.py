"""Open spans at a point of a text: quotes, brackets, code, emphasis, tags.

A sentence must not end inside one. A mark that was never closed must not hold the text back for ever either:
each kind is forgotten after so many characters, and all but a fenced block at a blank line.
"""

from dataclasses import dataclass

_PAIRS = {"(": ")", "[": "]", "{": "}", "“": "”", "„": "“", "«": "»", "‹": "›", "「": "」", "『": "』"}
_PAIRS |= {"（": "）", "【": "】", "《": "》", "‘": "’"}
_CLOSING = {closing: opening for opening, closing in _PAIRS.items() if opening != "„"}
_CODE = frozenset("`~")
_HARD = _CODE | frozenset("[{<")
_FENCE = 3
"""Ticks or tildes that make a block of code where they begin a line or end one."""
_LEADING = frozenset(" \t>-*+•.)0123456789")
"""What may stand before a fence in its line: indentation, a quotation's mark, a list's."""
_LIMIT = {"(": 160, "{": 160, "[": 240, "<": 240, "*": 160, "_": 160, "`": 240, "'": 160, "‘": 160}
_QUOTE_LIMIT = 240
_DEPTH = 8
CLOSERS = frozenset(_PAIRS.values()) | frozenset("\"'*_`>")
"""Characters that, behind a mark and touching it, belong to the sentence that the mark ends."""


@dataclass(slots=True)
class _Span:
    kind: str
    at: int
    width: int = 1
    leads: bool = False
    """It began its line."""
    spaced: bool = False
    """White space came since it opened."""
    fence: bool = False
    """It is a block of code, not code in a line: its first line ended before it was closed."""


class OpenSpans:
    """Fed one character at a time; constant work each (the stack holds at most eight spans)."""

    def __init__(self) -> None:
        self._stack: list[_Span] = []
        self._at = 0
        self._run = ""  # quotes, stars, underscores or ticks that await their right neighbour
        self._before = ""  # the character before them
        self._run_width = 0
        self._run_leads = False  # nothing but what may stand before a fence stands before them
        self._leading = True  # the same of the next character
        self._previous = ""

    @property
    def fenced(self) -> bool:
        """Inside a fenced code block."""
        return bool(self._stack) and self._stack[-1].fence

    @property
    def hard(self) -> bool:
        """Inside code, a link, braces or a tag: nothing in there is prose."""
        return any(span.kind in _HARD for span in self._stack)

    def inside(self) -> bool:
        """Whether a span is open here; forgets those that grew too long."""
        self._stack = [span for span in self._stack if self._at - span.at <= self._limit(span)]
        return bool(self._stack)

    def blank_line(self) -> None:
        """A paragraph ended: whatever was open was never closed, except a fenced block."""
        if not self.fenced:
            self._stack.clear()

    def forget_apostrophe(self) -> None:
        """The quote that opened last was an apostrophe (``'em``, ``'90s``)."""
        if self._stack and self._stack[-1].kind in "'‘":
            self._stack.pop()

    def settle(self, following: str) -> None:
        """Decide what the quotes, stars or ticks just read were, now that the next character is there."""
        run, width, before = self._run, self._run_width, self._before
        self._run, self._run_width = "", 0
        if not run or run == following:
            self._run, self._run_width = run, width
            return
        if run in _CODE:
            self._ticks(run, width)
            return
        spaced = not before or before.isspace()
        opens = not following.isspace() and (spaced or not before.isalnum())
        closes = not spaced
        if run in "'’_":
            closes = closes and not following.isalnum()
        if run == "’":
            opens = False
        if closes and self._close(run if run != "’" else "‘"):
            return
        if opens and (spaced or before in "([{\"'“‘«*_-–—/:"):
            self._open(run, width)

    def feed(self, character: str) -> None:
        """Take the next character, after :meth:`settle` has seen it."""
        previous, self._previous = self._previous, character
        self._at += 1
        code = self._stack[-1] if self._stack and self._stack[-1].kind in _CODE else None
        if character == code.kind if code else character in "\"'’*_`~":
            if not self._run:
                self._run, self._before, self._run_leads = character, previous, self._leading
            self._run_width += 1
        elif code and character == "\n":
            # "Here: ```python" ends its line: a block as well
            code.fence = code.fence or (code.width >= _FENCE and (code.leads or not code.spaced))
            if not code.fence:
                self._stack.pop()  # code in a line that its line did not close
        elif code:
            code.spaced = code.spaced or character.isspace()
        elif character == ">":
            self._close("<")
        elif previous == "<" and (character.isalpha() or character == "/"):
            self._open("<")
        elif character == "“" and any(span.kind == "„" for span in self._stack):
            self._close("„")
        elif character in _PAIRS:
            self._open(character)
        elif character in _CLOSING:
            self._close(_CLOSING[character])
        self._leading = character == "\n" or (self._leading and character in _LEADING)

    def skip(self, plain: str) -> None:
        """Take letters and digits that follow one."""
        self._previous = plain[-1]
        self._at += len(plain)
        self._leading = self._leading and plain.isdecimal()

    def _open(self, kind: str, width: int = 1, leads: bool = False) -> None:
        if len(self._stack) < _DEPTH:
            self._stack.append(_Span(kind, self._at, width, leads))

    def _close(self, kind: str) -> bool:
        """Close the innermost span of this kind, and with it what was left open inside it."""
        for place in range(len(self._stack) - 1, -1, -1):
            if self._stack[place].kind == kind:
                del self._stack[place:]
                return True
        return False

    def _ticks(self, kind: str, width: int) -> None:
        """Ticks or tildes: as many as opened the code close it; a block, more of them as well."""
        code = self._stack[-1] if self._stack and self._stack[-1].kind in _CODE else None
        if code:
            if width == code.width or width > code.width >= _FENCE:
                self._stack.pop()
        elif kind == "`" or (self._run_leads and width >= _FENCE):  # tildes in a line strike words out
            self._open(kind, width, self._run_leads)

    @staticmethod
    def _limit(span: _Span) -> float:
        return float("inf") if span.fence else _LIMIT.get(span.kind, _QUOTE_LIMIT)
