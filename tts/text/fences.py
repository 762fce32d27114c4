"""Which lines of a text are prose, and which are blocks of code that nobody says.

A block opens with three or more ticks or tildes that begin a line, or with ticks and at most one word that
end one, and closes behind as many or more. Both marks in one line are code in a line, and that is said.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_LEAD = r"[ \t>]{0,24}(?:(?:[-*+•]|\d{1,3}[.)])[ \t]{1,4})?"
_TILDES = re.compile(rf"{_LEAD}(~{{3,}})")
_LEADING = re.compile(_LEAD)
_TICKS = re.compile(r"`+")
_MARKED = re.compile(r"[{}<>;=\\]|\(\)")
_ENDED = re.compile(r"[.!?][\"')*_]{0,3}$")


class Part(NamedTuple):
    """A range of the text: one line of prose without its line break, or a whole block of code."""

    start: int
    end: int
    prose: bool


class _Fence(NamedTuple):
    mark: str
    width: int
    start: int
    """Where its first mark stands."""


def parts(text: str) -> Iterator[Part]:
    """The lines of prose and the blocks of code of a text, in order.

    A block may begin and end within a line; what stands before and behind it there is prose.
    """
    at = 0
    while at <= len(text):
        end = _line_end(text, at)
        fence = _opening(text, at, end)
        if fence is None:
            yield Part(at, end, prose=True)
            at = end + 1
            continue
        if fence.start > at:
            yield Part(at, fence.start, prose=True)
        over = _over(text, fence, end)
        yield Part(fence.start, min(over, len(text)), prose=False)
        at = over


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return end if end >= 0 else len(text)


def _opening(text: str, start: int, end: int) -> _Fence | None:
    """The block that a line opens and does not close."""
    if tildes := _TILDES.match(text, start, end):
        width = len(tildes[1])
        closed = text.find("~" * width, tildes.end(), end) >= 0
        return None if closed else _Fence("~", width, tildes.start(1))
    opened: re.Match[str] | None = None
    for ticks in _TICKS.finditer(text, start, end):
        if opened is None:
            opened = ticks
        elif _closes(len(ticks[0]), len(opened[0])):
            opened = None
    if opened is None or len(opened[0]) < 3:
        return None
    lead = _LEADING.match(text, start, opened.start())
    leads = lead is not None and lead.end() == opened.start()
    if not leads and any(map(str.isspace, text[opened.end() : end].rstrip("\r"))):
        return None
    return _Fence("`", len(opened[0]), opened.start())


def _closes(width: int, opened: int) -> bool:
    return width == opened or width > opened >= 3


def _closing(text: str, start: int, end: int, fence: _Fence) -> int | None:
    """The end of what closes a block in one line; tildes do where they begin it, ticks anywhere."""
    if fence.mark == "~":
        tildes = _TILDES.match(text, start, end)
        return tildes.end() if tildes and len(tildes[1]) >= fence.width else None
    for ticks in _TICKS.finditer(text, start, end):
        if len(ticks[0]) >= fence.width:
            return ticks.end()
    return None


def _over(text: str, fence: _Fence, end: int) -> int:
    """Where a block is over: behind what closes it, or at the first sentence when nothing does."""
    at = fence.start + fence.width
    sentence = -1
    while at <= len(text):
        if sentence < 0 and _reads_as_prose(text[at:end]):
            sentence = at
        at = end + 1
        end = _line_end(text, at)
        closed = _closing(text, at, end, fence) if at <= len(text) else None
        if closed is not None:
            return closed
    return sentence if sentence >= 0 else len(text) + 1


def _reads_as_prose(line: str) -> bool:
    words = line.strip()
    return (
        words[:1].isalpha()
        and len(words.split()) > 2
        and bool(_ENDED.search(words))
        and not _MARKED.search(words)
    )
