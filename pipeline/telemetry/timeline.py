"""The timeline of a turn: named marks on one clock, the durations between them, and the turn's record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

MARKS = (
    "speech_start",
    "speech_end",
    "soft_end",
    "asr_final",
    "llm_start",
    "llm_first_token",
    "llm_first_sentence",
    "tts_start",
    "tts_first_audio",
    "commit",
    "audio_sent",
    "audio_heard",
    "reply_end",
    "interrupted",
)
"""In the order in which they happen without speculation; with it, llm_* and tts_* can precede commit."""

DURATIONS = {
    "endpoint": ("speech_end", "commit"),
    "asr": ("speech_end", "asr_final"),
    "ttft": ("llm_start", "llm_first_token"),
    "first_sentence": ("llm_first_token", "llm_first_sentence"),
    "tts": ("tts_start", "tts_first_audio"),
    "after_commit": ("commit", "audio_sent"),
    "voice_to_voice": ("speech_end", "audio_sent"),
}
"""`ttft` and `first_sentence` are kept apart because exact speculative decoding shortens only the second."""

OF_AN_ATTEMPT = tuple(mark for mark in MARKS if mark not in ("speech_start",))
"""Marks that belong to one revision: a refuted revision takes them with it."""

OF_A_REPLY = tuple(mark for mark in MARKS if mark.startswith(("llm_", "tts_")))
"""Marks of the making of one reply: a draft that is made anew takes them with it."""


class Timeline:
    """Marks of one turn in loop seconds. The first setting of a mark is kept; absent means it did not happen.

    `observer(name, at)` is told of every new mark, for whoever watches the turn live.
    """

    def __init__(self, observer: Callable[[str, float], None] | None = None) -> None:
        self._marks: dict[str, float] = {}
        self._observer = observer

    def mark(self, name: str, at: float) -> bool:
        """Set a mark; returns whether it is new. Raises KeyError for a name that is not in MARKS."""
        if name not in MARKS:
            raise KeyError(name)
        if name in self._marks:
            return False
        self._marks[name] = at
        if self._observer is not None:
            self._observer(name, at)
        return True

    def move(self, name: str, at: float) -> None:
        """Set a mark right whose clock has been set right since."""
        if name in self._marks:
            self._marks[name] = at

    def at(self, name: str) -> float | None:
        return self._marks.get(name)

    def refute(self) -> None:
        """The caller went on: the marks of the refuted revision did not happen."""
        self._forget(OF_AN_ATTEMPT)

    def redraft(self) -> None:
        """The reply is made anew: what was marked of the old one is of nothing that is heard."""
        self._forget(OF_A_REPLY)

    def withdraw(self) -> None:
        """What was made of the reply so far is not said: it was a thought."""
        self._forget(("llm_first_sentence", "tts_start", "tts_first_audio"))

    def _forget(self, names: Iterable[str]) -> None:
        for name in names:
            self._marks.pop(name, None)

    @property
    def origin(self) -> float | None:
        """What the marks are relative to: speech_end, or commit for a turn without speech."""
        return self._marks.get("speech_end", self._marks.get("commit"))

    def relative_ms(self) -> dict[str, float]:
        """Marks in milliseconds from the origin, in the order of MARKS."""
        origin = self.origin
        if origin is None:
            return {}
        return {m: round((self._marks[m] - origin) * 1000, 1) for m in MARKS if m in self._marks}

    def durations_ms(self) -> dict[str, float]:
        """The durations whose two marks are there, in milliseconds."""
        return {
            name: round((self._marks[end] - self._marks[start]) * 1000, 1)
            for name, (start, end) in DURATIONS.items()
            if start in self._marks and end in self._marks
        }


@dataclass(slots=True)
class TurnRecord:
    """What the latency log keeps of one turn. Plain data; `as_dict` is the log's row and the wire's
    record."""

    call_id: str
    turn: int
    revision: int
    agent: str
    origin: str
    started_at: str
    revisions: int = 1
    marks: dict[str, float] = field(default_factory=dict)
    durations: dict[str, float] = field(default_factory=dict)
    caller_text: str = ""
    reply_text: str = ""
    heard_text: str = ""
    status: str = ""
    caller: str | None = None
    audio_seconds: float = 0.0
    draft_fate: str = "none"
    interrupted: bool = False
    language: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """One flat dictionary; the language stage's figures (passes, drafted, …) are merged in by their
        names."""
        return {
            "call_id": self.call_id,
            "turn": self.turn,
            "revision": self.revision,
            "revisions": self.revisions,
            "agent": self.agent,
            "origin": self.origin,
            "started_at": self.started_at,
            "marks": dict(self.marks),
            "durations": dict(self.durations),
            "caller_text": self.caller_text,
            "reply_text": self.reply_text,
            "heard_text": self.heard_text,
            "status": self.status,
            "caller": self.caller,
            "audio_seconds": round(self.audio_seconds, 3),
            "draft_fate": self.draft_fate,
            "interrupted": self.interrupted,
            **self.language,
            "extra": dict(self.extra),
        }
