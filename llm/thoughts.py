"""What a reasoning model only thinks, told apart from what it says, while it streams.

Pure: pieces of text in, of any size, and what is to be said out. A thought is neither said nor heard. Models
mark it in many ways: ``<think>`` and its like, ``[THINK]`` (Magistral), ``◁think▷`` (Kimi), ``<seed:think>``,
``<|START_THINKING|>`` (Command A), ``<|begin_of_thought|>``, the channels of gpt-oss, those of Gemma 4, and
the sentences of Granite. Some chat templates write the beginning into the prompt, so that only the end comes.

An answer may talk about such a mark. One in quotes or code is text, and so is one amid a sentence with a
space or a mark of punctuation behind it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

_NAME = "[A-Za-z][A-Za-z_:.-]{0,31}"
_THOUGHT_NAME = (
    r"[A-Za-z_:.-]{0,20}(?:think|thought|reason|reflect|monologue|scratchpad|analysis)[a-z_:.-]{0,20}"
)
_BEFORE_NAME = r"<[ \t]{0,2}\\?/?[ \t]{0,2}"
_VALUE = r"(?:\"[^\"<>\n]{0,60}\"|'[^'<>\n]{0,60}'|[^\s\"'<>/]{1,60})"
_ATTRIBUTES = rf"(?:\s{{1,4}}[A-Za-z][\w:-]{{0,30}}={_VALUE}){{0,4}}\s{{0,4}}/?"
_WITHIN = r"/?[ ]?[A-Za-z_]{3,20}"
_BRACKETS = {"[": "]", "{": "}", "【": "】", "＜": "＞", "〈": "〉", "⟨": "⟩", "《": "》", "◁": "▷"}
"""Beside angle brackets; in these only the plain names of a thought count."""
_MARK = re.compile(
    rf"<[|｜]?/?{_NAME}[|｜]?>|{_BEFORE_NAME}(?i:{_THOUGHT_NAME}){_ATTRIBUTES}>|"
    + "|".join(rf"{re.escape(begin)}{_WITHIN}{re.escape(end)}" for begin, end in _BRACKETS.items())
)
_PART_OF_ONE = re.compile(
    rf"<[|｜]?/?(?:{_NAME})?[|｜]?|{_BEFORE_NAME}(?:[A-Za-z_:.-]{{1,60}})?"
    rf"|{_BEFORE_NAME}(?i:{_THOUGHT_NAME})\s[^<>\n]{{0,200}}"
    rf"|{_BEFORE_NAME}(?i:{_THOUGHT_NAME})\s{{0,4}}/?"
    rf"|[{re.escape(''.join(_BRACKETS))}](?:/?[ ]?[A-Za-z_]{{0,20}})?"
)
_BEGINS = re.compile(f"[<{re.escape(''.join(_BRACKETS))}]")
_MARK_NAME = re.compile(r"\W*([A-Za-z][A-Za-z_:.-]*)")
_CHANNEL = re.compile(r"\s*([a-z]+)")

_THINKING = frozenset({"think", "thinking", "thought", "thoughts", "antthinking"})
_KINDS_OF_THOUGHT = _THINKING | {
    "reasoning",
    "reason",
    "reflection",
    "reflect",
    "scratchpad",
    "scratch",
    "monologue",
    "analysis",
    "cot",
    "rationale",
    "deliberation",
    "planning",
}
_ANSWER = frozenset({"answer", "response", "solution", "output", "final"})
_HARMONY = frozenset({"channel", "message", "start", "end", "return", "call", "constrain"})

PHRASES = {"Here is my thought process:": "Here is my response:"}
"""Granite's sentences around a thought. They count only where a reply begins."""
BARE_CHANNELS = {"analysis": "assistantfinal"}
"""What is left of gpt-oss's channels behind a server that leaves special tokens out."""

_ENDS = frozenset(".!?…。！？")
_CLOSERS = "\"'”’)]*_"
_OPENING_QUOTES = frozenset("`“‘«(")
_STRAIGHT_QUOTES = frozenset("\"'")


_Verdict = Literal["wait", "text", "recall", "taken"]


@dataclass(frozen=True, slots=True)
class Split:
    """What is to be said of a piece. `recall`: all text before it was a thought after all."""

    text: str
    recall: bool = False


@dataclass(frozen=True, slots=True)
class _ThoughtMark:
    """`act`: open or close a thought; `shut`, the same where one is open; `channel`, of gpt-oss; `drop`;
    `empty`, a thought that is closed where it opens."""

    act: str
    kind: str = ""


def is_mark(name: str) -> bool:
    """Whether a special token of this name is one of the marks that thoughts are told by."""
    return _MARK.fullmatch(name) is not None and _meaning(name) is not None


def left_open(header: str) -> tuple[str, ...]:
    """The thoughts that a prompt's end leaves open, outermost first: where a reply to it begins."""
    open_kinds: list[str] = []
    for found in _MARK.finditer(header):
        mark = _meaning(found[0])
        if mark is None:
            continue
        if mark.act == "channel":
            name = _CHANNEL.match(header, found.end())
            open_kinds = [] if name is None or name[1] == "final" else ["channel"]
        elif mark.act == "open" and mark.kind != "header":
            open_kinds.append(mark.kind)
        elif mark.act in ("close", "shut") and mark.kind in open_kinds:
            del open_kinds[open_kinds.index(mark.kind) :]
    return tuple(open_kinds)


ASSUMED = ("",)
"""Open thoughts of a reply that is only believed to begin with one: whatever closes a thought closes it."""


class Thoughts:
    """The splitter of one reply. `opened`: the thoughts that the prompt has opened (see `left_open`).
    `phrases`: what else begins and ends one, at the reply's beginning."""

    def __init__(self, opened: tuple[str, ...] = (), phrases: Mapping[str, str] = PHRASES) -> None:
        self.thought = bool(opened)
        """Whether a thought was open at any time of the last piece."""
        self._open = list(opened)
        self._phrases = phrases
        self._held = ""  # may be a part of a mark, or one whose meaning the next character tells
        self._text = ""
        self._gap: str | None = None  # white space behind a thought; None where there was none
        self._last_thought = ""  # its last character
        self._closing = ""  # the phrase that ends a thought which a phrase began
        self._began = False  # something but white space has come
        self._had_thoughts = bool(opened)
        self._reopened = 0  # marks that opened a thought of a kind which was open

    @property
    def thinking(self) -> bool:
        """Whether the text that comes next is a thought, as far as is known."""
        return bool(self._open)

    @property
    def only_assumed(self) -> bool:
        """Whether no mark has come yet in a reply that is believed to begin amid a thought."""
        return tuple(self._open) == ASSUMED

    @property
    def pending(self) -> bool:
        """Whether some of the text is held back."""
        return bool(self._held)

    def push(self, piece: str) -> Split:
        """Take the next piece; what is now certain to be said."""
        return self._take(piece, last=False)

    def flush(self) -> Split:
        """The reply is over: what was held back, unless it was a thought."""
        return self._take("", last=True)

    def _take(self, piece: str, *, last: bool) -> Split:
        self._held += piece
        self.thought = bool(self._open)
        said: list[str] = []
        recall = False
        while self._held:
            if self._closing:
                if not self._phrase_ends(last):
                    break
            elif not self._began and not self._open and (waits := self._phrase_begins(last)) is not None:
                if waits:
                    break
            elif (begin := _BEGINS.search(self._held)) is None:
                said.append(self._say(len(self._held)))
            elif begin.start():
                said.append(self._say(begin.start()))
            elif (found := _MARK.match(self._held)) is None:
                if not last and _PART_OF_ONE.fullmatch(self._held):
                    break
                said.append(self._say(1))
            else:
                verdict = self._judge(found, last)
                if verdict == "wait":
                    break
                if verdict == "recall":
                    recall, said, self._text = True, [], ""
                elif verdict == "text":
                    said.append(self._say(found.end()))
        return Split("".join(said), recall)

    # ---- text

    def _say(self, count: int) -> str:
        """Take characters that are no mark; what of them is said."""
        text, self._held = self._held[:count], self._held[count:]
        self._began = self._began or bool(text.strip())
        if self._open:
            self._last_thought = text[-1]
            return ""
        if self._gap is not None:
            text = self._gap + text
            if not text.strip():
                self._gap = text
                return ""
            self._gap = None
            rest = text.lstrip()
            if not self._text or self._text[-1].isspace():
                text = rest
            else:
                text = (text[: len(text) - len(rest)] or " ") + rest
        self._text += text
        return text

    # ---- phrases

    def _phrase_begins(self, last: bool) -> bool | None:
        """Whether to wait for more; None where the reply does not begin with a phrase. Takes it if it is
        there."""
        begun = self._held.lstrip()
        for phrase, closing in self._phrases.items():
            if begun.startswith(phrase):
                behind = begun[len(phrase) :]
                glued = phrase[-1].isalpha()
                if glued and not behind and not last:
                    return True
                if not glued or behind[:1].isupper():
                    self._held, self._closing = behind, closing
                    self._open, self.thought = ["phrase"], True
                    self._had_thoughts = self._began = True
                    return False
            elif not last and phrase.startswith(begun) and begun:
                return True
        return None

    def _phrase_ends(self, last: bool) -> bool:
        """Drop the thought as far as it goes; whether it ended."""
        at = self._held.find(self._closing)
        if at < 0:
            most = 0 if last else len(self._closing) - 1
            keep = next((n for n in range(most, 0, -1) if self._held.endswith(self._closing[:n])), 0)
            self._held = self._held[len(self._held) - keep :]
            return False
        self._held = self._held[at + len(self._closing) :]
        self._closing = ""
        self._open.clear()
        self._gap = ""
        return True

    # ---- marks

    def _judge(self, found: re.Match[str], last: bool) -> _Verdict:
        """What a mark at the beginning of what is held is. `wait`: only what follows tells."""
        mark = _meaning(found[0])
        behind = self._held[found.end() :]
        if mark is None or (not self._open and self._is_quoted()):
            return "text"
        if self._open and self._last_thought in ("`", '"'):
            if not behind and not last:
                return "wait"
            if behind[:1] == self._last_thought:
                return "text"
        if mark.act == "channel":
            return self._channel(behind, last)
        if mark.act == "drop" and not self._had_thoughts and found[0][1] not in "|｜":
            return "text"
        if mark.act in ("open", "empty") and not self._open and not _begins_sentence(self._text):
            if not behind:
                return "text" if last else "wait"
            if not (behind[0].isalnum() or behind[0] in "\n<"):
                return "text"
        verdict: _Verdict = "taken"
        if mark.act == "close" and not self._open and self._reopened:
            self._reopened -= 1  # what came since was still the outer thought
            verdict = "recall" if self._text.strip() else "taken"
        elif mark.act == "close" and not self._open and not self._had_thoughts:
            verdict = self._stray(behind, last)
            if verdict in ("wait", "text"):
                return verdict
        self._held = behind
        self._began = True
        self._act(mark)
        return verdict

    def _act(self, mark: _ThoughtMark) -> None:
        if mark.act == "open":
            if mark.kind not in self._open:
                self._open.append(mark.kind)
            else:
                self._reopened += 1
            self._had_thoughts = self.thought = True
        elif mark.act in ("close", "shut"):
            self._close(mark.kind)

    def _close(self, kind: str) -> None:
        """End the thought of this kind and what was left open in it. Behind any, white space is no text."""
        if self._open[:1] == [""]:
            self._open.clear()
        elif kind in self._open:
            del self._open[self._open.index(kind) :]
        if not self._open:
            self._gap = self._gap or ""
            self._had_thoughts = True

    def _channel(self, behind: str, last: bool) -> _Verdict:
        """gpt-oss says which channel follows; only `final` is meant for the caller."""
        name = _CHANNEL.match(behind)
        if not last and (not behind.strip() if name is None else name.end() == len(behind)):
            return "wait"
        self._held = behind[name.end() :] if name is not None else behind
        self._began = self._had_thoughts = True
        self._open = [] if name is not None and name[1] == "final" else ["channel"]
        self.thought = self.thought or bool(self._open)
        self._gap = self._gap or ""
        return "taken"

    def _stray(self, behind: str, last: bool) -> _Verdict:
        """An end without a beginning: the prompt has begun the thought, or the answer talks about marks."""
        before = self._text
        if _begins_sentence(before) or not before[-1].isspace():
            return "recall" if before else "taken"
        following = behind.lstrip(" ")
        if not following:
            return "text" if last else "wait"
        begins = following[0] == "\n" or (following[0].isalnum() and not following[0].islower())
        return "recall" if begins else "text"

    def _is_quoted(self) -> bool:
        """Whether the text so far ends in code, or with the quote that a mark would stand in."""
        before, last = self._text[-2:-1], self._text[-1:]
        if last in _OPENING_QUOTES or (last in _STRAIGHT_QUOTES and (before.isspace() or not before)):
            return bool(last)
        line = self._text.rpartition("\n")[2].replace("```", "")
        return self._text.count("```") % 2 == 1 or line.count("`") % 2 == 1


def _begins_sentence(text: str) -> bool:
    """Whether what follows the text begins a sentence."""
    before = text.rstrip(" \t")
    return not before or before[-1] == "\n" or before.rstrip(_CLOSERS)[-1:] in _ENDS


def _meaning(mark: str) -> _ThoughtMark | None:
    """What a mark stands for; None for any other tag."""
    found = _MARK_NAME.match(mark)
    if found is None:
        return None
    ends = "/" in mark[: found.start(1)]
    name = found[1].lower()
    words = re.split("[_:.-]", name)
    if mark[0] in _BRACKETS:
        return _bracketed(mark, name, ends)
    if mark in ("<|channel>", "<channel|>"):  # Gemma 4's brackets say which end they are
        return _ThoughtMark("open" if mark[1] == "|" else "close", "channel")
    if mark[1] in "|｜" and name in _HARMONY:
        return _harmony(name)
    if thought := next((word for word in words if word in _KINDS_OF_THOUGHT), None):
        if mark.endswith("/>") and not ends:
            return _ThoughtMark("empty")
        closes = ends or not {"end", "stop"}.isdisjoint(words)
        return _ThoughtMark("close" if closes else "open", "think" if thought in _THINKING else thought)
    return _ThoughtMark("drop") if not _ANSWER.isdisjoint(words) else None


def _bracketed(mark: str, name: str, ends: bool) -> _ThoughtMark | None:
    """In other brackets than angles: answers have words of their own in them (``[OPTIONAL]``, ``{name}``)."""
    if name in _ANSWER and name.upper() in mark:
        return _ThoughtMark("drop")
    if name not in _KINDS_OF_THOUGHT:
        return None
    return _ThoughtMark("close" if ends else "open", "think" if name in _THINKING else name)


def _harmony(name: str) -> _ThoughtMark:
    if name == "channel":
        return _ThoughtMark("channel")
    if name in ("start", "constrain"):
        return _ThoughtMark("open", "header")
    return _ThoughtMark("shut", "header" if name == "message" else "channel")
