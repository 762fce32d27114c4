"""A checkpoint's chat template: rendered around placeholders, with roles in an order that it accepts.

Calls have turns that some templates refuse: the agent greets first, and after an interruption with nothing
heard the caller has spoken twice. Mistral's and Gemma's want user and assistant in turn, some no system
message. What a template accepts as it is is rendered as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Literal, NoReturn, Self

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
OPENING = "(The call begins.)"
"""What the agent's first words answer, where a template wants them to answer something."""

_PLACE = re.compile("\ue000(\\d+)\ue001")

Role = Literal["system", "user", "assistant"]
Content = tuple[Role, str]
"""A message as the template gets it."""


class PromptError(ValueError):
    """Messages that make no prompt: none, an order the template refuses, too long for the context."""


@dataclass(frozen=True, slots=True)
class AcceptedRoles:
    """Which conversations a template accepts.

    `system`: ones with a system message. `agent_first`: ones that the assistant begins. `repeats`: ones with
    two messages of one role in a row.
    """

    system: bool
    agent_first: bool
    repeats: bool

    @classmethod
    def of(cls, accepts: Callable[[Sequence[Role]], bool]) -> Self:
        """Found by small samples."""
        system = accepts(("system", "user"))
        before: tuple[Role, ...] = ("system",) if system else ()
        return cls(
            system,
            agent_first=accepts((*before, "assistant", "user")),
            repeats=accepts((*before, "user", "user"))
            and accepts((*before, "user", "assistant", "assistant", "user")),
        )

    def fit(self, messages: Sequence[Content]) -> list[Content]:
        """The messages in roles that the template accepts.

        A system text that is refused goes in front of the first user message, messages of one role become
        one with a blank line in between, and before an agent that begins a user message says what happened.
        """
        whole = list(messages)
        first = next((i for i, (role, _) in enumerate(whole) if role != "system"), len(whole))
        if not self.agent_first and [role for role, _ in whole[first : first + 1]] == ["assistant"]:
            whole.insert(first, ("user", OPENING))
        fitting: list[Content] = []
        system_before = False
        for role, text in whole:
            moved = role == "system" and not self.system
            as_role: Role = "user" if moved else role
            if fitting and fitting[-1][0] == as_role and (system_before or not self.repeats):
                fitting[-1] = (as_role, f"{fitting[-1][1]}\n\n{text}")
            else:
                fitting.append((as_role, text))
            system_before = moved
        return fitting


class _Generation(Extension):
    """`{% generation %}`, by which some templates mark what the model says. The text stays the same."""

    tags = {"generation"}  # noqa: RUF012 (declared by jinja2)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class ChatTemplate:
    """The template of one model. Thread-safe."""

    def __init__(self, tokenizer: Tokenizer, now: Callable[[], datetime] = datetime.now) -> None:
        """`now`: local time, for one that tells the date. Raises `PromptError` where it cannot be read."""
        self._now = now
        self._bos, self._eos = tokenizer.bos, tokenizer.eos
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[LoopControlExtension, _Generation]
        )
        environment.globals["raise_exception"] = _refuse
        try:
            self._template = environment.from_string(tokenizer.chat_template or CHATML)
        except TemplateError as error:
            raise PromptError(f"the model's chat template cannot be read: {error}") from error
        if not self.accepts(("user",)):  # it may not do without the date, for which transformers has this
            environment.globals["strftime_now"] = lambda form: self._now().strftime(form)
        self.accepted_roles = AcceptedRoles.of(self.accepts)
        self._pieces_on = lru_cache(maxsize=64)(self._render_pieces)

    def accepts(self, roles: Sequence[Role]) -> bool:
        """Whether messages of these roles are rendered as they are."""
        try:
            self._render(_places(roles), header=True)
        except PromptError:
            return False
        return True

    def pieces(self, roles: tuple[Role, ...], header: bool) -> tuple[str | int, ...]:
        """The text for messages of these roles, with a message's index wherever its content goes.

        `header`: with the beginning of a reply. Raises `PromptError`.
        """
        return self._pieces_on(self._now().date(), roles, header)

    def _render_pieces(self, day: date, roles: tuple[Role, ...], header: bool) -> tuple[str | int, ...]:
        """Once for each day: the template may tell the date."""
        messages = _places(roles)
        try:
            text = self._render(messages, header)
        except PromptError:
            text = self._render(self.accepted_roles.fit(messages), header)
        parts = _PLACE.split(text)
        return tuple(int(part) if i % 2 else part for i, part in enumerate(parts) if part)

    def _render(self, messages: Sequence[Content], header: bool) -> str:
        try:
            return self._template.render(
                messages=[{"role": role, "content": text} for role, text in messages],
                add_generation_prompt=header,
                bos_token=self._bos,
                eos_token=self._eos,
                tools=None,
                enable_thinking=False,  # a caller would wait for thoughts, and hear them
            )
        except Exception as error:  # a template is a program: it may stumble over what it did not foresee
            raise PromptError(f"the model's chat template refuses these messages: {error}") from error


def _places(roles: Sequence[Role]) -> list[Content]:
    return [(role, f"\ue000{i}\ue001") for i, role in enumerate(roles)]


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)
