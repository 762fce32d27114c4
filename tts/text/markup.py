"""Markdown, HTML, SSML, emoji and stray characters taken out of a text; what is left is prose.

Fenced code is dropped, inline code and link labels stay, list items, headings and table rows end in a full
stop. Every pattern is anchored and bounded, so the work grows with the length of the text only.
"""

import re
import unicodedata

from tts.text.tracked import Tracked

_FENCE = re.compile(r"\s{0,8}(?:`{3,}|~{3,})")
_PREFIX = re.compile(r"\s*(?:>\s?){0,5}(?:#{1,6}\s+|[-*+•‣◦▪]\s+(?:\[[ xX]\]\s+)?)?")
_NUMBERED = re.compile(r"\(?\d{1,3}[.)]\s")
_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,300}>|<[!?][^<>\n]{0,300}>")
_AUTOLINK = re.compile(r"<((?:https?://|mailto:)?[\w.+-]{1,64}[@.:][^<>\s]{1,200})>")
_LINK = re.compile(
    r"!?\[([^\[\]\n]{0,300})\](?:\([^()\n]{0,500}(?:\([^()\n]{0,100}\)[^()\n]{0,300})?\)|\[[^\[\]\n]{0,80}\])"
)
_NOTE = re.compile(r"\[\^?\d{1,3}\]|\[\^[\w-]{1,40}\]")
_CODE = re.compile(r"(`{1,2})([^`\n]{1,300})\1")
_ENTITY = re.compile(r"&(amp|lt|gt|quot|apos|nbsp|#39|#160);")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'", "nbsp": " ", "#39": "'", "#160": " "}
_ARROW = re.compile(r"[-=]{1,3}>|<[-=]{1,3}(?=\s)|[←-⇿⟵-⟿]")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_SAME = str.maketrans(
    {"‘": "'", "’": "'", "‛": "'", "′": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "″": '"'}
    | {"‐": "-", "‑": "-", "−": "-", "‒": "–", "―": "—", "⁃": "-"}
    | dict.fromkeys("\t\r\x0b\x0c\x85\u2028\u2029", " ")
)
_KEPT_SYMBOLS = frozenset("°℃℉№")
_DROPPED = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "So", "Sk"))


def plain(text: str) -> Tracked:
    """The prose of a text as a model writes it, each character with its place in that text."""
    out = Tracked()
    fenced = False
    at = 0
    for line in text.split("\n"):
        end = at + len(line)
        if _FENCE.match(line):
            fenced = not fenced
            _finish(out, at)
        elif not fenced:
            _line(text, at, end, out)
        at = end + 1
    return out


def _finish(out: Tracked, at: int) -> None:
    """End what was said so far as a sentence, if it does not end as one."""
    while out.last == " ":
        out.pop()
    quoted = out.last in ("'", '"', ")", "]")
    ended = quoted and len(out) > 1 and out.characters[-2] in ".!?…:"
    if not ended and (quoted or out.last.isalnum() or out.last in ("%", "°")):
        out.add(".", at, at)


def _line(text: str, start: int, end: int, out: Tracked) -> None:
    if not any(map(str.isalnum, text[start:end])) and len(text[start:end].strip()) != 1:
        _finish(out, start)  # blank, a rule, or the line under a table's head
        return
    prefix = _PREFIX.match(text, start, end)
    body = prefix.end() if prefix else start
    row = text.startswith("|", body)
    block = row or bool(text[start:body].strip()) or bool(_NUMBERED.match(text, body, end))
    if out:
        if block:
            _finish(out, start)
        out.add(" ", start, start)
    before = len(out)
    if row:
        body += 1
        while end > body and text[end - 1] in "| ":
            end -= 1
    _inline(text, body, end, out)
    if block and len(out) > before:
        _finish(out, end)


def _inline(text: str, at: int, end: int, out: Tracked) -> None:
    """Append one line's prose."""
    label_end = link_end = -1
    while at < end:
        if at == label_end:
            at = link_end
            continue
        character = text[at]
        if character.isalnum() or character == " ":
            out.add(character, at, at + 1)
            at += 1
            continue
        if character in "[!<" and (link := _LINK.match(text, at, end) or _AUTOLINK.match(text, at, end)):
            at, label_end, link_end = link.start(1), link.end(1), link.end()
            continue
        unsaid = _TAG.match(text, at, end) or _NOTE.match(text, at, end)
        if unsaid:
            out.add(" " if character == "<" else "", at, unsaid.end())
            at = unsaid.end()
        else:
            at = _mark(character, text, at, end, out)


def _mark(character: str, text: str, at: int, end: int, out: Tracked) -> int:
    """Append what one character that is no letter, digit or space stands for; where the next one is."""
    if character == "`" and (code := _CODE.match(text, at, end)):
        for place in range(code.start(2), code.end(2)):
            out.add(_spoken_mark(text[place], out), place, place + 1)
        return code.end()
    if character == "&" and (entity := _ENTITY.match(text, at, end)):
        out.add(_ENTITIES[entity[1]], at, entity.end())
        return entity.end()
    if character == "\\" and (escape := _ESCAPE.match(text, at, end)):
        out.add("" if escape[1] in "*_~#[]" else _spoken_mark(escape[1], out), at, escape.end())
        return escape.end()
    if arrow := _ARROW.match(text, at, end):
        out.add(", ", at, arrow.end())
        return arrow.end()
    after = text[at + 1 : at + 2] if at + 1 < end else ""
    before = text[at - 1 : at] if at else ""
    if character == "|":
        out.add(", ", at, at + 1)
    elif not _is_emphasis(character, before, after, "*" in text[at + 1 : min(end, at + 80)]):
        out.add(_spoken_mark(character, out), at, at + 1)
    return at + 1


def _is_emphasis(character: str, before: str, after: str, pair: bool) -> bool:
    """Whether a star, underscore or tilde is markup: at a word's edge, not an operator between numbers.

    ``pair`` tells whether another star follows soon.
    """
    if character == "*":
        if after.isdecimal() and (not before or before.isspace()) and not pair:
            return False  # "dial *67"
        return not (before.isspace() and after.isspace()) and not (before.isdecimal() and after.isdecimal())
    if character == "_":
        return not ((before.isalnum() or before == "_") and (after.isalnum() or after == "_"))
    return character == "~" and not after.isdecimal() and after != "/"


def _spoken_mark(character: str, out: Tracked) -> str:
    character = character.translate(_SAME)
    if character.isascii() and character.isprintable():
        return "" if character in "`^" else character
    if character in _KEPT_SYMBOLS:
        return character
    if unicodedata.category(character) in _DROPPED:
        return "" if out.last in ("", " ") or unicodedata.category(character) != "So" else " "
    return "" if character in "\ufe0e\ufe0f\u20e3" else character
