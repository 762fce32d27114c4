"""Messages to ids: the checkpoint's chat template, and what to leave out when a call outgrows the context.

The template is rendered around placeholders, then each placeholder is replaced by the ids of its message. So
only the template writes special tokens, a generated reply goes back in as exactly the ids it had, and every
message's encoding is independent of its neighbours, which keeps prefixes stable from turn to turn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NoReturn

from jinja2 import nodes
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension, LoopControlExtension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from llm.tokenizer import Tokenizer

CHATML = (
    "{% for message in messages %}"
    "<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_PLACE = re.compile("\ue000(\\d+)\ue001")

Role = Literal["system", "user", "assistant"]


class PromptError(ValueError):
    """Messages that make no prompt: none, an order the template refuses, too long for the context."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a call. `ids`: the exact ids of a generated reply, so that the cache still fits it."""

    role: Role
    text: str
    ids: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """Ids of a prompt, and how many of the oldest messages had to go to make it fit."""

    ids: list[int]
    dropped_messages: int = 0


class _Generation(Extension):
    """`{% generation %}`, by which some templates mark what the model says. The text stays the same."""

    tags = {"generation"}  # noqa: RUF012 (declared by jinja2)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class PromptWriter:
    """Renders the messages of a call for one model. Thread-safe."""

    def __init__(self, tokenizer: Tokenizer, context: int) -> None:
        """Raises `PromptError` where the chat template cannot be read."""
        self._tokenizer = tokenizer
        self._context = context
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[LoopControlExtension, _Generation]
        )
        environment.globals["raise_exception"] = _refuse
        try:
            self._template = environment.from_string(tokenizer.chat_template or CHATML)
        except TemplateError as error:
            raise PromptError(f"the model's chat template cannot be read: {error}") from error
        self._pieces = lru_cache(maxsize=64)(self._render)

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        """The prompt for a reply, its header included. An eighth of the context is left for the reply.

        Drops the oldest turns, at a turn boundary and never the system message, where they do not fit.
        Raises `PromptError`.
        """
        kept, dropped = self._fitting(messages)
        return Prompt(self._ids(kept, header=True), dropped)

    def stable(self, messages: Sequence[Message]) -> Prompt:
        """The prompt's beginning that will not change while the last user message still grows, no header.

        The last word is held back: what follows may merge with it into other tokens.
        """
        kept, dropped = self._fitting(messages)
        if kept[-1].role != "user":
            return Prompt(self._ids(kept, header=False), dropped)
        words = kept[-1].text.rstrip().rpartition(" ")[0]
        return Prompt(self._ids([*kept[:-1], Message("user", words)], header=False, open_end=True), dropped)

    def _ids(self, messages: Sequence[Message], *, header: bool, open_end: bool = False) -> list[int]:
        pieces = self._pieces(tuple(m.role for m in messages), header)
        if open_end:
            pieces = pieces[: max(i for i, piece in enumerate(pieces) if isinstance(piece, int)) + 1]
        ids: list[int] = []
        for piece in pieces:
            if isinstance(piece, str):
                ids += self._tokenizer.encode_markup(piece)
            else:
                message = messages[piece]
                ids += self._tokenizer.encode(message.text) if message.ids is None else message.ids
        return ids

    def _render(self, roles: tuple[Role, ...], header: bool) -> tuple[str | int, ...]:
        """The template's text, with a message's index wherever its content goes."""
        messages: list[dict[str, Any]] = [
            {"role": role, "content": f"\ue000{i}\ue001"} for i, role in enumerate(roles)
        ]
        try:
            text = self._template.render(
                messages=messages,
                add_generation_prompt=header,
                bos_token=self._tokenizer.bos,
                eos_token=self._tokenizer.eos,
                tools=None,
                enable_thinking=False,  # a caller would wait for thoughts, and hear them
            )
        except TemplateError as error:
            raise PromptError(f"the model's chat template refuses these messages: {error}") from error
        parts = _PLACE.split(text)
        return tuple(int(part) if i % 2 else part for i, part in enumerate(parts) if part)

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


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)
