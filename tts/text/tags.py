"""Tags of HTML, SSML and XML, apart from words that only stand between such brackets.

A tag is not said. ``<Enter>`` is a key, ``<your name>`` a place to fill in: their words are said.
"""

import re
from typing import Literal, NamedTuple

from tts.text.lexicon import word_set

_HTML = word_set(
    "a abbr acronym article aside audio b bdi bdo big blockquote body br button caption center cite "
    "code col colgroup dd del details dfn dialog div dl dt em embed fieldset figcaption figure font "
    "footer form h1 h2 h3 h4 h5 h6 head header hr html i iframe img input ins kbd label legend li link "
    "main map mark meta nav noscript object ol optgroup option p param picture pre q s samp script "
    "section select small source span strike strong style sub summary sup svg table tbody td template "
    "textarea tfoot th thead title tr tt u ul var video wbr"
)
_SSML = word_set(
    "speak voice prosody break emphasis say-as phoneme lexicon lookup desc lang token w paragraph "
    "sentence spell"
)
_ENDING = word_set(
    "p div li tr h1 h2 h3 h4 h5 h6 dd dt blockquote section article summary caption title option"
)
_CELLS = word_set("td th")
_TAG = re.compile(
    r"<(?P<close>/)?(?P<name>[A-Za-z][\w:.-]{0,60})(?P<rest>[^<>\n]{0,300})>|<[!?][^<>\n]{0,300}>"
)
_WORDS = re.compile(r"[^\W\d_][\w' -]{0,80}")


class Tag(NamedTuple):
    """What stands between angle brackets."""

    kind: Literal["space", "end", "cell", "words"]
    """What it is in prose: a space, the end of a block or of a table's cell, or the words inside it."""
    end: int


def tag_at(text: str, at: int, end: int) -> Tag | None:
    """The tag that begins at a place, or the words in brackets; None where the bracket is a mark."""
    found = _TAG.match(text, at, end)
    if not found:
        return None
    name, rest = found["name"], found["rest"]
    if name is None or found["close"]:
        kind = name.lower() if name else ""
        known: Literal["space", "end", "cell"] = (
            "end" if kind in _ENDING else "cell" if kind in _CELLS else "space"
        )
        return Tag(known, found.end())
    if "=" in rest or rest.rstrip().endswith("/") or _is_bare_tag(text, found):
        return Tag("space", found.end())
    if at and text[at - 1].isalnum():
        return None  # "x<y and z>w"
    return Tag("words", found.end()) if words_inside(found[0]) else Tag("space", found.end())


def words_inside(bracketed: str) -> bool:
    """Whether nothing but words stands between angle brackets."""
    return (
        bracketed[:1] == "<"
        and bracketed[-1:] == ">"
        and bool(_WORDS.fullmatch(bracketed, 1, len(bracketed) - 1))
    )


def _is_bare_tag(text: str, found: re.Match[str]) -> bool:
    """A name alone: one that is known, or one that begins the text or touches what follows it."""
    name = found["name"]
    if found["rest"].strip() or not (name.islower() or name.isupper()):
        return False
    if name.lower() in _HTML or name.lower() in _SSML:
        return True
    following = text[found.end() : found.end() + 1]
    return name.islower() and (not text[: found.start()].strip() or following.isalnum() or following == "<")
