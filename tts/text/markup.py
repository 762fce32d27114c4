"""Markdown, HTML, SSML, emoji and stray characters taken out of a text; what is left is prose.

Blocks of code are dropped, code in a line and link labels stay, list items, headings and table rows end in
a full stop. A mark that nothing closes swallows nothing. Every pattern is anchored and bounded, so the work
grows with the length of the text only.
"""

import html
import re
import unicodedata

from tts.text.fences import parts
from tts.text.lexicon import word_set
from tts.text.tags import tag_at, words_inside
from tts.text.tracked import Tracked

_PREFIX = re.compile(r"\s*(?:>\s?){0,5}(?:#{1,6}\s+|[-*+•‣◦▪]\s+(?:\[[ xX]\]\s+)?)?")
_NUMBERED = re.compile(r"(?:\(?\d{1,3}[.)]|\(?[A-Za-z]\)|\[\d{1,3}\])\s")
_STRONG = re.compile(r"\s*(\*\*|__)(?!\s)[^*_\n]{1,200}\1\s*")
"""A line that is bold as a whole: a heading."""
_ROW = re.compile(r"\||[^|\n]{0,300}[ ]\|[ ]")
_AUTOLINK = re.compile(r"<((?:https?://|mailto:)?[\w.+-]{1,64}[@.:][^<>\s]{1,200})>")
_LINK = re.compile(
    r"!?\[([^\[\]\n]{0,300})\]"
    r"(?:\((?P<place>[^()\n]{0,500}(?:\([^()\n]{0,100}\)[^()\n]{0,300})?)\)|\[[^\[\]\n]{0,80}\])"
)
_BADGE = re.compile(r"\[!\[([^\[\]\n]{0,300})\]\([^()\n]{0,500}\)\]\([^()\n]{0,500}\)")
"""A picture that is a link."""
_DEFINED = re.compile(r"\s{0,3}\[[^\[\]\n]{1,80}\]:\s{1,8}<?(?:https?://|mailto:|www\.|[/#])[^\n]*")
"""Where a link by name leads to; it stands in a line of its own."""
_MATH = re.compile(r"(?<![\w$])(\${1,2})(?![\s\d$])(?=[^$\n]{0,300}[=^\\])([^$\n]{1,300})(?<!\s)\1(?![\d$])")
"""A formula between dollar signs."""
_FACE = re.compile(r"(?:[:;=][-o^']?[()\[\]DPp/|*]|:[a-z][a-z0-9_+-]{1,30}:)(?![^\s.,!?])")
"""A face drawn with marks, or a picture's name between colons."""
_NOTE = re.compile(r"\[\^?\d{1,3}\]|\[\^[\w-]{1,40}\]")
_MENU = word_set("press dial choose select option step type enter key number room say push hit")
"""Words that a bracketed number is not a note behind: ``press [1] for sales``."""
_CODE = re.compile(r"(?<!`)(?P<marks>`{1,8}|~{3,8})(?![`~])([^\n]{1,300}?)(?<![`~])(?P=marks)(?!`)")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,10}\d{0,2});")
_ARROW = re.compile(r"[-=]{1,3}>|<[-=]{1,3}(?=\s)|[←-⇿⟵-⟿]")
_HIGHLIGHT = re.compile(r"(?<![\w=])==(?=\w)|(?<=[\w.!?])==(?![\w=])")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_SAME = str.maketrans(
    {"‘": "'", "’": "'", "‛": "'", "′": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "″": '"'}
    | {"‐": "-", "‑": "-", "−": "-", "‒": "–", "―": "—", "⁃": "-"}
    | dict.fromkeys("\t\r\x0b\x0c\x85\xa0\u1680\u202f\u205f\u3000" + "\u2028\u2029", " ")
    | dict.fromkeys(map(chr, range(0x2000, 0x200B)), " ")
)
_KEPT_SYMBOLS = frozenset("°℃℉№")
_DROPPED = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "So", "Sk"))


def plain(text: str) -> Tracked:
    """The prose of a text as a model writes it, each character with its place in that text."""
    out = Tracked()
    for part in parts(text):
        if part.prose:
            _line(text, part.start, part.end, out)
        else:
            _finish(out, part.start)
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
    if _DEFINED.fullmatch(text, start, end):
        _finish(out, start)
        return
    prefix = _PREFIX.match(text, start, end)
    body = prefix.end() if prefix else start
    row = bool(_ROW.match(text, body, end))
    strong = bool(_STRONG.fullmatch(text, start, end)) and end < len(text)
    block = row or strong or bool(text[start:body].strip()) or bool(_NUMBERED.match(text, body, end))
    if out:
        if block:
            _finish(out, start)
        out.add(" ", start, start)
    before = len(out)
    if "#" in text[start:body]:
        while end > body and text[end - 1] in "# ":
            end -= 1
    if row:
        body += text.startswith("|", body)
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
        if character == "$" and (math := _MATH.match(text, at, end)):
            at, label_end = math.span(2)
            link_end = math.end()
            continue
        if character in ":;=" and (not at or text[at - 1].isspace()) and (face := _FACE.match(text, at, end)):
            at = face.end()
            continue
        if character in "[!<" and (
            link := _BADGE.match(text, at, end)
            or _LINK.match(text, at, end)
            or _AUTOLINK.match(text, at, end)
        ):
            at, label_end = _said_of(link)
            link_end = link.end()
            continue
        if character == "<" and (tag := tag_at(text, at, end)):
            if tag.kind == "words":
                at, label_end, link_end = at + 1, tag.end - 1, tag.end
                continue
            if tag.kind == "end":
                _finish(out, at)
            out.add(", " if tag.kind == "cell" else " ", at, tag.end)
            at = tag.end
        elif character == "[" and (note := _NOTE.match(text, at, end)):
            if _is_note(text, note):
                at = note.end()
            else:
                at, label_end, link_end = at + 1, note.end() - 1, note.end()
        else:
            at = _mark(character, text, at, end, out)


def _said_of(link: re.Match[str]) -> tuple[int, int]:
    """The range that is said of a link: its label, or where it leads when the label says nothing."""
    place = link.groupdict().get("place")
    if not place or link[0][0] == "!" or any(map(str.isalnum, link[1])):
        return link.span(1)
    start = link.start("place")
    return start, start + len(place.split(" ")[0])


def _is_note(text: str, note: re.Match[str]) -> bool:
    """Whether a bracketed number is a note, not one that a caller is to press or a list's."""
    before = text[max(0, note.start() - 40) : note.start()]
    if note[0][1] == "^" or (before and not before[-1].isspace()):
        return True
    words = before.split()
    return "\n" not in before[len(before.rstrip()) :] and bool(words) and words[-1].lower() not in _MENU


def _mark(character: str, text: str, at: int, end: int, out: Tracked) -> int:
    """Append what one character that is no letter, digit or space stands for; where the next one is."""
    if character in "`~" and (code := _CODE.match(text, at, end)):
        start, stop = code.span(2)
        if words_inside(code[2].strip()):  # a key: `<Enter>`
            start, stop = text.index("<", start) + 1, text.rindex(">", start, stop)
        for place in range(start, stop):
            out.add(_spoken_mark(text[place], out), place, place + 1)
        return code.end()
    if character == "&" and (entity := _ENTITY.match(text, at, end)):
        character_meant = html.unescape(entity[0])
        if character_meant != entity[0]:
            for part in character_meant:
                out.add(_spoken_mark(part, out), at, entity.end())
            return entity.end()
    if character == "\\" and (escape := _ESCAPE.match(text, at, end)):
        out.add("" if escape[1] in "*_~#[]" else _spoken_mark(escape[1], out), at, escape.end())
        return escape.end()
    if arrow := _ARROW.match(text, at, end):
        out.add(", ", at, arrow.end())
        return arrow.end()
    after = text[at + 1 : at + 2] if at + 1 < end else ""
    before = text[at - 1 : at] if at else ""
    if highlight := _HIGHLIGHT.match(text, at, end):
        return highlight.end()
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
        if (not before or before.isspace()) and (after.isdecimal() or after in ".,!?;:") and not pair:
            return False  # "dial *67", "press *."
        return not (before.isspace() and after.isspace()) and not (before.isdecimal() and after.isdecimal())
    if character == "_":
        return not ((before.isalnum() or before == "_") and (after.isalnum() or after == "_"))
    return character == "~" and (before.isalpha() or not after.isdecimal()) and after != "/"


def _spoken_mark(character: str, out: Tracked) -> str:
    character = character.translate(_SAME)
    if character.isascii() and character.isprintable():
        return "" if character in "`^" else character
    if character in _KEPT_SYMBOLS:
        return character
    if unicodedata.category(character) in _DROPPED:
        return "" if out.last in ("", " ") or unicodedata.category(character) != "So" else " "
    return "" if character in "\ufe0e\ufe0f\u20e3" else character
