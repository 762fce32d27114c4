"""Templates that refuse how a call goes: the agent first, two messages of one role, a system message."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pytest

from llm.cache import common_prefix
from llm.chat_template import CHATML, AcceptedRoles, ChatTemplate, Role
from llm.prompt import Message, PromptError, PromptWriter
from llm.tokenizer import Tokenizer
from tests.llm.toys import byte_tokenizer

# As Mistral's first ones: user and assistant in turn, nothing else.
MISTRAL = """{% for message in messages %}
{% if message.role not in ["user", "assistant"] %}{{ raise_exception("only user and assistant") }}{% endif %}
{% if (message.role == "user") != (loop.index0 % 2 == 0) %}{{ raise_exception("must alternate") }}{% endif %}
{% if message.role == "user" %}[INST] {{ message.content }} [/INST]
{%- else %} {{ message.content }}</s>{% endif %}
{% endfor %}"""

# As its later ones: a system message first, which is written before the caller's last words.
MISTRAL_WITH_SYSTEM = """{% if messages[0].role == "system" %}
{% set system = messages[0].content %}{% set turns = messages[1:] %}
{% else %}{% set turns = messages %}{% endif %}
{% for message in turns %}
{% if (message.role == "user") != (loop.index0 % 2 == 0) %}
{{ raise_exception("after the optional system message, roles must alternate") }}
{% elif message.role == "user" %}
[INST] {% if loop.last and system is defined %}{{ system }}

{% endif %}{{ message.content }}[/INST]
{% else %} {{ message.content | trim }}</s>{% endif %}
{% endfor %}"""

GEMMA = """{{ bos_token }}
{%- if messages[0].role == "system" %}{{ raise_exception("no system role") }}{% endif %}
{% for message in messages %}
{% if (message.role == "user") != (loop.index0 % 2 == 0) %}{{ raise_exception("must alternate") }}{% endif %}
{% set role = "model" if message.role == "assistant" else message.role %}
<turn>{{ role }}
{{ message.content | trim }}<end>
{% endfor %}
{% if add_generation_prompt %}<turn>model
{% endif %}"""

# As Gemma 3's: the system text goes into the first message, which must be the caller's.
GEMMA_WITH_SYSTEM = """{% if messages[0].role == "system" %}
{% set first = messages[0].content + "\n\n" %}{% set turns = messages[1:] %}
{% else %}{% set first = "" %}{% set turns = messages %}{% endif %}
{% for message in turns %}
{% if (message.role == "user") != (loop.index0 % 2 == 0) %}{{ raise_exception("must alternate") }}{% endif %}
<turn>{{ message.role }}
{{ first if loop.first else "" }}{{ message.content | trim }}<end>
{% endfor %}
{% if add_generation_prompt %}<turn>assistant
{% endif %}"""

# As Qwen3.5's: nothing is rendered before the caller has said something.
WANTS_A_USER = (
    """{% if messages | selectattr("role", "equalto", "user") | list | length == 0 %}
{{ raise_exception("no user query found") }}{% endif %}"""
    + CHATML
)

TEMPLATES = {
    "mistral": MISTRAL,
    "mistral with system": MISTRAL_WITH_SYSTEM,
    "gemma": GEMMA,
    "gemma with system": GEMMA_WITH_SYSTEM,
    "wants a user": WANTS_A_USER,
    "chatml": CHATML,
}

SYSTEM, GREETING = Message("system", "Persona."), Message("assistant", "Hello!")
CALL = [
    SYSTEM,
    GREETING,
    Message("user", "When do you open?"),
    Message("assistant", "At nine.", (200, 201)),
    Message("user", "And"),  # cut off with nothing heard
    Message("user", "on Sundays?"),
    Message("assistant", "We are closed."),
    Message("assistant", "Are you still there?"),
    Message("user", "Yes."),
]


def tokenizer_of(template: str) -> Tokenizer:
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = TEMPLATES[template]
    return tokenizer


def written(template: str, messages: Sequence[Message], context: int = 4096) -> str:
    tokenizer = tokenizer_of(template)
    return tokenizer.decode(PromptWriter(tokenizer, context).prompt(messages).ids)


@pytest.mark.parametrize(
    ("template", "roles"),
    [
        ("mistral", AcceptedRoles(False, False, False)),
        ("mistral with system", AcceptedRoles(True, False, False)),
        ("gemma", AcceptedRoles(False, False, False)),
        ("gemma with system", AcceptedRoles(True, False, False)),
        ("wants a user", AcceptedRoles(True, True, True)),
        ("chatml", AcceptedRoles(True, True, True)),
    ],
)
def test_samples_tell_what_a_template_accepts(template: str, roles: AcceptedRoles) -> None:
    assert ChatTemplate(tokenizer_of(template)).accepted_roles == roles


def test_a_call_is_brought_into_turns_that_mistral_and_gemma_accept() -> None:
    assert written("mistral", CALL) == (
        "[INST] Persona.\n\n(The call begins.) [/INST] Hello!</s>[INST] When do you open? [/INST]"
        " \ufffd\ufffd</s>[INST] And\n\non Sundays? [/INST]"
        " We are closed.\n\nAre you still there?</s>[INST] Yes. [/INST]"
    )
    assert written("gemma", CALL[:3]) == (
        "<turn>user\nPersona.\n\n(The call begins.)<end>\n<turn>model\nHello!<end>\n"
        "<turn>user\nWhen do you open?<end>\n<turn>model\n"
    )


def test_a_system_message_that_is_accepted_stays_one() -> None:
    assert written("mistral with system", CALL[:3]) == (
        "[INST] (The call begins.)[/INST]\n Hello!</s>[INST] Persona.\n\nWhen do you open?[/INST]\n"
    )
    assert written("gemma with system", CALL[:3]).startswith(
        "<turn>user\nPersona.\n\n(The call begins.)<end>\n"
    )


@pytest.mark.parametrize("template", TEMPLATES)
def test_nothing_changes_for_what_a_template_accepts(template: str) -> None:
    chat = ChatTemplate(tokenizer_of(template))
    calls: list[tuple[Role, ...]] = [
        ("user",),
        ("user", "assistant", "user"),
        ("system", "user"),
        ("system", "assistant", "user"),
        ("user", "user"),
    ]
    accepted = [roles for roles in calls if chat.accepts(roles)]
    assert len(accepted) >= 2
    for roles in accepted:
        expected = chat._template.render(
            messages=[{"role": role, "content": str(i)} for i, role in enumerate(roles)],
            add_generation_prompt=True,
            bos_token="",
        )
        assert "".join(map(str, chat.pieces(roles, True))) == expected


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_moment_of_a_call_has_a_prompt(template: str) -> None:
    writer = PromptWriter(tokenizer_of(template), 4096)
    for end in range(1, len(CALL) + 1):
        for messages in (CALL[:end], CALL[1:end]):
            if messages:
                writer.stable(messages)
            if messages and messages[-1].role == "user":
                writer.prompt(messages)


@pytest.mark.parametrize("template", [name for name in TEMPLATES if name != "mistral with system"])
def test_what_was_read_stays_the_beginning_of_later_prompts(template: str) -> None:
    """But for the end of a message that is joined: it is opened again.

    Mistral's later templates move the system text to the newest message, whatever the messages are.
    """
    tokenizer = tokenizer_of(template)
    writer = PromptWriter(tokenizer, 4096)
    for end in range(1, len(CALL)):
        if CALL[end - 1].role == CALL[end].role == "assistant":
            continue
        stable = writer.stable(CALL[:end]).ids
        for later in range(end + 1, len(CALL) + 1):
            if CALL[later - 1].role == "user":
                assert writer.prompt(CALL[:later]).ids[: len(stable)] == stable
    if not ChatTemplate(tokenizer).accepted_roles.repeats:
        cut_off, gone_on = writer.prompt(CALL[:5]).ids, writer.prompt(CALL[:6]).ids
        assert tokenizer.decode(cut_off[: common_prefix(cut_off, gone_on)]).endswith("And")


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_oldest_turns_still_go_at_a_turn_boundary(template: str) -> None:
    call = [SYSTEM, GREETING]
    for i in range(40):
        call += [Message("user", f"question {i:03}"), Message("assistant", f"answer {i:03}")]
    call.append(Message("user", "last question"))
    tokenizer = tokenizer_of(template)
    writer = PromptWriter(tokenizer, 1024)
    cut = writer.prompt(call)
    text = tokenizer.decode(cut.ids)
    assert cut.dropped_messages % 2 == 1, "the greeting went before whole turns"
    assert "Persona." in text
    assert "The call begins" not in text
    assert text.index(f"question {cut.dropped_messages // 2:03}") < text.index("answer")
    dropped = [writer.prompt(call[: 2 + 2 * turn + 1]).dropped_messages for turn in range(40)]
    assert dropped == sorted(dropped)
    assert len(set(dropped)) <= 10, "the cut stays for several turns"


def test_a_template_may_tell_the_date() -> None:
    """As SmolLM3's and Mistral Small's do; transformers gives them the function."""
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = "{{ strftime_now('%d %B %Y') }}: {{ messages[0].content }}"
    days = [datetime(2026, 5, 1, 12), datetime(2026, 5, 2, 9)]
    chat = ChatTemplate(tokenizer, lambda: days[0])
    assert chat.pieces(("user",), True) == ("01 May 2026: ", 0)
    days.pop(0)
    assert chat.pieces(("user",), True) == ("02 May 2026: ", 0)
    tokenizer.chat_template = "{{ 'no date' if strftime_now is not defined }}: {{ messages[0].content }}"
    assert ChatTemplate(tokenizer).pieces(("user",), True) == ("no date: ", 0), "one that can do without"


def test_a_template_that_stumbles_is_told() -> None:
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = "{{ messages[0].content + 1 }}"
    with pytest.raises(PromptError, match="refuses these messages"):
        PromptWriter(tokenizer, 1000).prompt([Message("user", "x")])
