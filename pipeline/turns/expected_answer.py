"""What kind of answer the agent's last words ask for: the end-of-turn policy waits longer for some. Pure."""

from __future__ import annotations

import re

from pipeline.turns.completeness import ExpectedAnswer

_EMAIL = re.compile(r"\be-?mail\b", re.IGNORECASE)
_DIGITS = re.compile(r"\b(number|digits?|code|zip|date of birth|pin)\b", re.IGNORECASE)
_ASKS = re.compile(r"\b(what|which|could|can|may|please|tell|give|spell|read)\b", re.IGNORECASE)
_YES_NO = re.compile(
    r"^(so |and |then |ok(ay)?,? )?"
    r"(is|are|was|were|do|does|did|can|could|would|will|shall|should|have|has|may|am)\b",
    re.IGNORECASE,
)


def expected_answer(agent_said: str) -> ExpectedAnswer:
    """Judged by the last sentence that the caller heard; nothing is expected unless it asks."""
    last = re.split(r"(?<=[.!?])\s+", agent_said.strip())[-1]
    if not last.endswith("?") and not re.search(r"\bplease\b", last, re.IGNORECASE):
        return ""
    if _ASKS.search(last) and _EMAIL.search(last):
        return "email"
    if _ASKS.search(last) and _DIGITS.search(last):
        return "digits"
    return "yes_no" if last.endswith("?") and _YES_NO.match(last) else ""
