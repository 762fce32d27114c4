"""What a simulated carrier says and understands, written independently of the bridge's own translation."""

from __future__ import annotations

import base64
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from web.phone.encodings import MULAW, Encoding

Message = str | bytes


class NotAccepted(ValueError):
    """The carrier would refuse, drop or misunderstand this message."""


@dataclass(frozen=True, slots=True)
class Play:
    payload: bytes


@dataclass(frozen=True, slots=True)
class Mark:
    name: str


@dataclass(frozen=True, slots=True)
class Clear:
    """Drop what has not been played. `marks_return`: those that waited come back at once."""

    marks_return: bool


@dataclass(frozen=True, slots=True)
class Pause:
    """Hold playback."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Go on after `Pause`."""


@dataclass(frozen=True, slots=True)
class HangUp:
    """End the telephone call."""


Order = Play | Mark | Clear | Pause | Resume | HangUp


@dataclass(frozen=True, slots=True)
class Dialled:
    """Who calls, and what the call's document passes on."""

    caller: str = "+15550100123"
    agent: str = ""
    parameters: tuple[tuple[str, str], ...] = ()

    def all_parameters(self) -> dict[str, str]:
        given = {"caller": self.caller, "agent": self.agent, **dict(self.parameters)}
        return {name: value for name, value in given.items() if value}


class Shape(ABC):
    """One call at one carrier. Counts its own messages; `at_ms` is the stream's own time."""

    path: ClassVar[str]
    encoding: Encoding = MULAW

    def __init__(self, dialled: Dialled = Dialled()) -> None:
        self.dialled = dialled

    @abstractmethod
    def opening(self) -> list[Message]:
        """What is sent when the socket has opened."""

    @abstractmethod
    def media(self, payload: bytes, at_ms: int) -> Message:
        """A frame of the caller's audio."""

    @abstractmethod
    def digit(self, digit: str) -> Message: ...

    @abstractmethod
    def marked(self, name: str) -> Message: ...

    def cleared(self) -> list[Message]:
        """What confirms a clear."""
        return []

    def ending(self) -> list[Message]:
        """What is sent when the caller hangs up, before the socket is closed."""
        return []

    @abstractmethod
    def read(self, message: Message) -> Order | None:
        """What the bridge wants. Raises NotAccepted."""


def fields(message: Message, *needed: str) -> dict[str, Any]:
    """A JSON object with these fields. Raises NotAccepted."""
    if not isinstance(message, str):
        raise NotAccepted("a binary message")
    value = json.loads(message)
    missing = [name for name in needed if name not in value]
    if missing:
        raise NotAccepted(f"{message[:100]} lacks {missing}")
    assert isinstance(value, dict)
    return value


def audio_of(media: dict[str, Any]) -> bytes:
    """The payload of a media object. Raises NotAccepted for a file's header: it would be heard as noise."""
    data = base64.b64decode(media["payload"], validate=True)
    if data[:4] == b"RIFF":
        raise NotAccepted("a WAV file instead of its samples")
    return data


def encoded(payload: bytes) -> str:
    return base64.b64encode(payload).decode("ascii")
