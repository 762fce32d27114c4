"""What passes between a carrier's encoding and the bridge, in the bridge's words.

A carrier's file is pure translation: a message of its socket becomes something that the caller did, and what
the bridge wants done becomes messages. It keeps only what the shapes need (a stream's id, its encodings).
"""

from __future__ import annotations

import base64
import binascii
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from web.phone.encodings import Encoding

Message = str | bytes

PARAMETERS = 32
PARAMETER_CHARACTERS = 512
"""How many custom parameters a call may bring, and how long a value may be; what is beyond is cut off."""


class BadMessage(ValueError):
    """A carrier's message that cannot be understood; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Started:
    """The stream begins. `call_id`: the carrier's name for the telephone call, for its REST calls.

    `account`: the carrier's account that the call belongs to. `variables`: custom parameters, without the
    two that the bridge itself understands, `agent` and `caller`.
    """

    stream_id: str
    call_id: str
    hears: Encoding
    speaks: Encoding
    account: str = ""
    caller: str | None = None
    agent: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Heard:
    """Audio of the caller. `chunk`: its number in the stream, `at_ms`: its time on the carrier's clock; where
    the carrier tells them."""

    payload: bytes
    chunk: int | None = None
    at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Pressed:
    """A key of the caller's telephone."""

    digit: str


@dataclass(frozen=True, slots=True)
class Played:
    """A mark came back: played, or (with some carriers) cleared."""

    name: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """The carrier ended the stream."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The carrier complains."""

    text: str


Inbound = Started | Heard | Pressed | Played | Stopped | Problem


class Carrier(ABC):
    """One stream's translation. The encodings of `Started` hold from then on.

    Every method that writes gives the messages to send, in order; none where the carrier has no such thing.
    """

    name: ClassVar[str]
    holds_playback: ClassVar[bool] = False

    @abstractmethod
    def read(self, message: Message) -> Inbound | None:
        """What a message means, None where it means nothing to a call. Raises BadMessage."""

    @abstractmethod
    def audio(self, frame: bytes) -> Message:
        """A frame of 20 ms to be played."""

    @abstractmethod
    def mark(self, name: str) -> list[Message]:
        """Ask to be told, by this name, when the audio sent so far has been played."""

    @abstractmethod
    def clear(self) -> list[Message]:
        """Drop what has not been played."""

    def pause(self) -> list[Message]:
        """Hold playback, where the carrier can."""
        return []

    def resume(self) -> list[Message]:
        """Go on after `pause`."""
        return []

    def hang_up(self) -> list[Message]:
        """End the telephone call from the socket. Most carriers do it by REST only, or go on with the
        call's document once the socket is closed."""
        return []


def json_object(message: Message) -> dict[str, Any]:
    """A text message that is one JSON object. Raises BadMessage."""
    if isinstance(message, bytes):
        raise BadMessage(f"a binary message of {len(message)} bytes where text is spoken")
    try:
        value = json.loads(message)
    except (ValueError, RecursionError):
        raise BadMessage(f"not JSON: {message[:80]!r}") from None
    if not isinstance(value, dict):
        raise BadMessage(f"not a JSON object: {message[:80]!r}")
    return value


def part(message: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object inside a message. Raises BadMessage."""
    value = message.get(name)
    if not isinstance(value, dict):
        raise BadMessage(f"{message.get('event', 'a message')!r} without {name!r}")
    return value


def text(message: object, *names: str) -> str:
    """The first of an object's fields that is there, as text (a number is text too); else empty."""
    if not isinstance(message, Mapping):
        return ""
    for name in names:
        value = message.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return ""


def number(message: object, name: str) -> int | None:
    """A count, written as a number or as text. None where it is missing or is none."""
    value = text(message, name)
    return int(value) if value.isdecimal() and len(value) < 16 else None


def payload(media: Mapping[str, Any]) -> bytes:
    """The audio of a media object. Raises BadMessage."""
    try:
        return base64.b64decode(media["payload"], validate=True)
    except KeyError:
        raise BadMessage("media without a payload") from None
    except (TypeError, ValueError, binascii.Error):
        raise BadMessage("a payload that is not base64") from None


def heard(media: Mapping[str, Any]) -> Heard | None:
    """The audio of a media object of JSON, None when it is not the caller's track. Raises BadMessage."""
    if text(media, "track") not in ("", "inbound", "inbound_track"):
        return None
    return Heard(payload(media), number(media, "chunk"), number(media, "timestamp"))


def base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def parameters(found: object) -> dict[str, str]:
    """Custom parameters: an object of values, or a list of {name, value}; bounded in number and length."""
    pairs: list[tuple[Any, Any]] = []
    if isinstance(found, Mapping):
        pairs = list(found.items())
    elif isinstance(found, list):
        pairs = [(one.get("name"), one.get("value")) for one in found if isinstance(one, Mapping)]
    plain = [(n, v) for n, v in pairs if isinstance(n, str) and n and isinstance(v, str | int | float)]
    return {name[:64]: str(value)[:PARAMETER_CHARACTERS] for name, value in plain[:PARAMETERS]}


def compact(message: Mapping[str, Any]) -> str:
    """JSON without white space."""
    return json.dumps(message, separators=(",", ":"))
