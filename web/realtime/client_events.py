"""What a client may send, and the decoding of it: JSON text in, a checked event out, or a clear error."""

from __future__ import annotations

import base64
import binascii
import json
import unicodedata
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

_UNSEEN = ("Cc", "Cf", "Co", "M", "Z")
"""Unicode's categories of controls, private characters, spaces, and marks without a letter."""

_BLANKS = frozenset("\u115f\u1160\u2800\u3164\uffa0\ufffc\ufffd\ufffe\uffff")
"""Letters and signs that show nothing: fillers, the empty braille cell, places of what is lost."""


class BadEvent(ValueError):
    """A client's message that cannot be acted on; becomes the protocol's `error` event.

    `code`: stable, for programs. `param`: the wrong field. `event_id`: the client's id of the message.
    """

    def __init__(
        self, code: str, message: str, *, param: str | None = None, event_id: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.param = param
        self.event_id = event_id


_Id = Annotated[str, Field(max_length=512)]
"""A client's own name for something; events that wait are kept with it."""


class _Part(BaseModel):
    """Fields that this service does not know are for others to read."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class ClientEvent(_Part):
    """`event_id` is the client's own name for the message; errors repeat it."""

    event_id: _Id | None = None


class AudioFormat(_Part):
    type: str = "audio/pcm"
    rate: int | None = None


class AudioDirection(_Part):
    format: AudioFormat | None = None


class AudioSettings(_Part):
    input: AudioDirection | None = None
    output: AudioDirection | None = None


class SessionSettings(_Part):
    """The settings a client may change: the audio formats. An agent's file fixes the rest.

    The flat names are the beta protocol's; where both are given, `audio` counts.
    """

    audio: AudioSettings | None = None
    input_audio_format: str | None = None
    output_audio_format: str | None = None


class SessionUpdate(ClientEvent):
    type: Literal["session.update"]
    session: SessionSettings


class AudioAppend(ClientEvent):
    """`audio` is base64 of samples in the session's input format."""

    type: Literal["input_audio_buffer.append"]
    audio: str


class AudioCommit(ClientEvent):
    type: Literal["input_audio_buffer.commit"]


class AudioClear(ClientEvent):
    type: Literal["input_audio_buffer.clear"]


class ItemContent(_Part):
    type: str
    text: str | None = None


class Item(_Part):
    id: _Id | None = None
    type: Literal["message"]
    role: Literal["user"]
    content: list[ItemContent] = Field(min_length=1, max_length=16)


class ItemCreate(ClientEvent):
    type: Literal["conversation.item.create"]
    item: Item


class ItemTruncate(ClientEvent):
    """How much of a reply's audio was played when the client stopped it."""

    type: Literal["conversation.item.truncate"]
    item_id: str
    content_index: Literal[0] = 0
    audio_end_ms: float = Field(ge=0, allow_inf_nan=False)


class ResponseCreate(ClientEvent):
    type: Literal["response.create"]


class ResponseCancel(ClientEvent):
    type: Literal["response.cancel"]
    response_id: str | None = None


class PlaybackReport(ClientEvent):
    """Ours: how much of a reply's audio has been played so far."""

    type: Literal["rejoinder.playback"]
    item_id: str
    played_ms: float = Field(ge=0, allow_inf_nan=False)


AnyClientEvent = Annotated[
    SessionUpdate
    | AudioAppend
    | AudioCommit
    | AudioClear
    | ItemCreate
    | ItemTruncate
    | ResponseCreate
    | ResponseCancel
    | PlaybackReport,
    Field(discriminator="type"),
]
_EVENTS: TypeAdapter[AnyClientEvent] = TypeAdapter(AnyClientEvent)


def decode_event(message: str | bytes) -> AnyClientEvent:
    """Check one websocket message. Raises BadEvent that says what is wrong with which field."""
    if isinstance(message, bytes):
        raise BadEvent(
            "binary_message",
            "messages are JSON text; audio goes base64 in input_audio_buffer.append",
            event_id=_own_id(message),
        )
    try:
        return _EVENTS.validate_json(message)
    except ValidationError as error:
        raise _explain(error, message) from None


def decode_audio(event: AudioAppend) -> bytes:
    """The event's base64 as bytes. Raises BadEvent."""
    try:
        return base64.b64decode(event.audio, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadEvent(
            "invalid_base64", f"audio is not base64: {error}", param="audio", event_id=event.event_id
        ) from None


def typed_text(event: ItemCreate) -> str:
    """The text of a typed user message. Raises BadEvent where nothing can be read in it, and for other
    content: audio has its own event."""
    for number, part in enumerate(event.item.content):
        if part.type != "input_text":
            raise BadEvent(
                "unsupported_content",
                f"a part of the type {part.type[:40]!r} cannot be used here: send input_text "
                "(audio: input_audio_buffer.append)",
                param=f"item.content.{number}",
                event_id=event.event_id,
            )
    text = " ".join(part.text for part in event.item.content if part.text).strip()
    if all(map(_is_unseen, text)):
        raise BadEvent("text_empty", "the message has no text", param="item.content", event_id=event.event_id)
    return text


def _explain(error: ValidationError, message: str) -> BadEvent:
    """The first problem, in the words of the protocol."""
    problem = error.errors(include_url=False)[0]
    kind = problem["type"]
    if kind == "json_invalid":
        reason = problem["msg"].removeprefix("Invalid JSON: ")
        return BadEvent("invalid_json", f"not JSON: {reason}", event_id=_own_id(message))
    event_id = _own_id(message)
    if kind == "union_tag_invalid":
        tag = str(problem["ctx"]["tag"])[:80]
        return BadEvent("unknown_event", f"there is no event {tag!r}", param="type", event_id=event_id)
    if kind == "union_tag_not_found":
        return BadEvent("missing_type", "the event has no type", param="type", event_id=event_id)
    if not problem["loc"]:
        return BadEvent("invalid_event", "an event is a JSON object with a type")
    name, *path = map(str, problem["loc"])
    where = ".".join(path)
    return BadEvent("invalid_value", f"{name}: {where}: {problem['msg']}", param=where, event_id=event_id)


def _is_unseen(character: str) -> bool:
    return character in _BLANKS or unicodedata.category(character).startswith(_UNSEEN)


def _own_id(message: str | bytes) -> str | None:
    """The client's id of a message that is JSON, perhaps too deep or with halves of characters, but not an
    event."""
    try:
        event: Any = json.loads(message)
    except (ValueError, RecursionError):
        return None
    found = event.get("event_id") if isinstance(event, dict) else None
    return found.encode(errors="replace").decode() if isinstance(found, str) else None
