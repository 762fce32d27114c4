"""What the agent's words ask for, by a table."""

from __future__ import annotations

import pytest

from pipeline.turns.expected_answer import expected_answer


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("", ""),
        ("We are open from eight to six.", ""),
        ("What is your phone number?", "digits"),
        ("Sure. Could you give me the order number?", "digits"),
        ("Please tell me your date of birth.", "digits"),
        ("What is your e-mail address?", "email"),
        ("Can you spell your email, please?", "email"),
        ("Is that right?", "yes_no"),
        ("That is Monday at nine. Shall I book it?", "yes_no"),
        ("Okay, do you want to come on Tuesday?", "yes_no"),
        ("When would you like to come?", ""),
        ("The number is five five five. Anything else?", ""),
    ],
)
def test_kinds(said: str, kind: str) -> None:
    assert expected_answer(said) == kind
