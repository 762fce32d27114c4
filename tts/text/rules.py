"""The one pass over prose: at every word, the first rule that knows it says how it is spoken."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from tts.text.lexicon import Lexicon
from tts.text.tracked import Tracked

Say = Callable[[re.Match[str], Lexicon], str | None]
"""From what a rule's pattern matched to the words for it; None where the rule does not apply after all."""


class Pattern(Protocol):
    """A compiled regular expression, or what finds a match with one."""

    def match(self, text: str, at: int, /) -> re.Match[str] | None: ...


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of writing. Its pattern is tried where a word begins and bounds every repeat."""

    pattern: Pattern
    say: Say
    starts: Literal["digit", "letter", "mark", "any"] = "any"
    english: bool = False
    """Whether it holds for English only."""


def rule(
    pattern: str,
    say: Say,
    starts: Literal["digit", "letter", "mark", "any"] = "any",
    *,
    english: bool = False,
    flags: int = 0,
) -> Rule:
    """A rule from the source of its pattern; white space in it is not significant."""
    return Rule(re.compile(pattern, re.VERBOSE | flags), say, starts, english)


_BEGIN = re.compile(r"(?<![^\W_])[^\W_]|[^\w\s.,:;!?\"—…]")
"""A word's first letter or digit, or a mark that is not plain punctuation."""


def verbalise(prose: Tracked, rules: Sequence[Rule], lexicon: Lexicon) -> Tracked:
    """The prose with everything a rule knows replaced by its words."""
    text = prose.text
    by_start = {
        kind: [rule for rule in rules if rule.starts in (kind, "any")] for kind in ("digit", "letter", "mark")
    }
    out = Tracked()
    done = at = 0
    while begin := _BEGIN.search(text, at):
        # what touches the end of a match begins a word, too
        at = done if 0 < done < len(text) and at == done and text[done].isalnum() else begin.start()
        character = text[at]
        kind = "digit" if character.isdecimal() else "letter" if character.isalpha() else "mark"
        found = _first(by_start[kind], text, at, lexicon)
        if found is None:
            at += 1
            continue
        end, words = found
        out.copy(prose, done, at)
        _join(out, words, text[end : end + 1], prose.starts[at], prose.ends[end - 1])
        done = at = end
    out.copy(prose, done, len(text))
    return out


def _first(rules: Sequence[Rule], text: str, at: int, lexicon: Lexicon) -> tuple[int, str] | None:
    """Where the match of the first rule that applies at a place ends, and its words."""
    for candidate in rules:
        match = candidate.pattern.match(text, at)
        if match and match.end() > at:
            words = candidate.say(match, lexicon)
            if words is not None:
                return match.end(), words
    return None


def _join(out: Tracked, words: str, following: str, start: int, end: int) -> None:
    """Append words, kept apart from a word that touches them."""
    if not words:
        return
    if out.last.isalnum() or out.last in (",", ";"):
        out.add(" ", start, start)
    out.add(words, start, end)
    if following.isalnum():
        out.add(" ", end, end)


def word_before(match: re.Match[str]) -> str:
    """The word before a match, in lower case; empty at the start or after a mark other than a full stop."""
    before = match.string[max(0, match.start() - 40) : match.start()].rstrip(" ")
    found = _LAST_WORD.search(before)
    return found[0].lower() if found else ""


def word_after(match: re.Match[str]) -> str:
    """The word right after a match and one space, in lower case."""
    found = _NEXT_WORD.match(match.string, match.end())
    return found[1].lower() if found else ""


def cue_before(match: re.Match[str]) -> str:
    """The word that says what a number is: the one before it, or before ``is`` (``the code is 4711``)."""
    before = match.string[max(0, match.start() - 60) : match.start()].rstrip(" :")
    words: list[str] = [word.lower() for word in _WORDS.findall(before)[-2:]]
    if len(words) == 2 and words[1] in ("is", "was", "are"):
        return words[0]
    return words[-1] if words and before[-1:].isalpha() else ""


def attributive(match: re.Match[str]) -> bool:
    """Whether an amount stands before a noun, ``a 10 dollar bill``, and is in the singular."""
    return word_before(match) in ("a", "an") and bool(word_after(match))


_WORDS = re.compile(r"[^\W\d_]+")
_LAST_WORD = re.compile(r"[^\W\d_]+\.?$")
_NEXT_WORD = re.compile(r"[ ]{0,2}([^\W\d_]{1,30})")


def ends_sentence(match: re.Match[str]) -> bool:
    """Whether a full stop that ends a match ends the sentence too: the text ends or a capital follows."""
    rest = match.string[match.end() : match.end() + 6].lstrip("\"') ")
    return not rest or rest[0].isupper()
