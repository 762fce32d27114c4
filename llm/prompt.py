"""Messages to ids: the checkpoint's chat template, and what to leave out when a call outgrows the context.

The template is rendered around placeholders, then each placeholder is replaced by the ids of its message. So
only the template writes special tokens, a generated reply goes back in as exactly the ids it had, and every
message's encoding is independent of its neighbours, which keeps prefixes stable from turn to turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llm.chat_template import ChatTemplate, PromptError, Role
from llm.thoughts import left_open
from llm.tokenizer import Tokenizer

__all__ = ["Message", "Prompt", "PromptError", "PromptWriter"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a call. `ids`: the exact ids of a generated reply, so that the cache still fits it."""

    role: Role
    text: str
    ids: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """Ids of a prompt, and how many of the oldest messages had to go to make it fit.

    `opened`: the thoughts that the template opens in the reply's header, for the reply to go on with.
    """

    ids: list[int]
    dropped_messages: int = 0
    opened: tuple[str, ...] = ()


class PromptWriter:
    """Renders the messages of a call for one model. Thread-safe."""

    def __init__(self, tokenizer: Tokenizer, context: int) -> None:
        """Raises `PromptError` where the chat template cannot be read."""
        self._tokenizer = tokenizer
        self._context = context
        self._template = ChatTemplate(tokenizer)

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        """The prompt for a reply, its header included. An eighth of the context is left for the reply.

        Drops the oldest turns, at a turn boundary and never the system message, where they do not fit.
        Raises `PromptError`.
        """
        kept, dropped = self._fitting(messages)
        return Prompt(self._ids(kept, header=True), dropped, self._opened(kept))

    def stable(self, messages: Sequence[Message]) -> Prompt:
        """The prompt's beginning that will not change while the last user message still grows, no header.

        The last word is held back: what follows may merge with it into other tokens.
        """
        roles = [m.role for m in messages]
        # A template may refuse messages to which the caller's are still to come.
        to_come = roles[-1:] not in ([], ["user"]) and not self._template.accepts(roles)
        kept, dropped = self._fitting([*messages, Message("user", "")] if to_come else messages)
        if kept[-1].role != "user":
            return Prompt(self._ids(kept, header=False), dropped)
        words = kept[-1].text.rstrip().rpartition(" ")[0]
        growing = [*kept[:-1], Message("user", words)]
        return Prompt(self._ids(growing, header=False, until=len(kept) - to_come), dropped)

    def _opened(self, messages: Sequence[Message]) -> tuple[str, ...]:
        last = self._template.pieces(tuple(m.role for m in messages), True)[-1]
        return left_open(last) if isinstance(last, str) else ()

    def _ids(self, messages: Sequence[Message], *, header: bool, until: int | None = None) -> list[int]:
        """`until`: end behind the text of the first that many messages."""
        pieces = self._template.pieces(tuple(m.role for m in messages), header)
        if until is not None:
            texts = (i for i, piece in enumerate(pieces) if isinstance(piece, int) and piece < until)
            pieces = pieces[: max(texts, default=-1) + 1]
        ids: list[int] = []
        for piece in pieces:
            if isinstance(piece, str):
                ids += self._tokenizer.encode_markup(piece)
            else:
                message = messages[piece]
                ids += self._tokenizer.encode(message.text) if message.ids is None else message.ids
        return ids

    def _fitting(self, messages: Sequence[Message]) -> tuple[Sequence[Message], int]:
        if not messages:
            raise PromptError("the prompt is empty: give at least one message")
        limit = self._context - self._context // 8
        length = len(self._ids(messages, header=True))
        if length <= limit:
            return messages, 0
        fixed = 1 if messages[0].role == "system" else 0
        # Turns go in blocks of a quarter of the context, so that the cut stays where it is for several turns
        # and the cache stays valid in between.
        block = max(1, limit // 4)
        excess = -(-(length - limit) // block) * block
        starts = [i for i, m in enumerate(messages) if m.role == "user" and i > fixed]
        for start in starts:
            kept = [*messages[:fixed], *messages[start:]]
            if length - len(self._ids(kept, header=True)) >= excess or start == starts[-1]:
                break
        else:
            kept, start = list(messages), fixed
        if len(self._ids(kept, header=True)) > limit:
            raise PromptError(
                f"the {'system message and the ' if fixed else ''}last turn need "
                f"{len(self._ids(kept, header=True))} tokens, but the context of {self._context} "
                f"leaves {limit} for a prompt: shorten the persona or raise the context"
            )
        return kept, start - fixed
