"""The end of a call by words: it ends once its last answer has been heard. Pure."""

from __future__ import annotations

from pipeline.hearing.interruption import words
from pipeline.speaking.reply_player import Answer


def says_goodbye(text: str, goodbyes: tuple[str, ...]) -> bool:
    """Whether the text ends with one of the farewells, as whole words."""
    said = words(text)
    return any(said[-len(phrase) :] == phrase for phrase in map(words, goodbyes) if phrase)


class LastAnswer:
    """Which answer is the call's last, and why."""

    def __init__(self) -> None:
        self._answer: Answer | None = None
        self._reason = ""

    @property
    def chosen(self) -> bool:
        return self._answer is not None

    def is_to_be(self, answer: Answer, reason: str) -> None:
        """The call ends for `reason` once this answer has been heard."""
        self._answer, self._reason = answer, reason

    def over(self, answer: Answer) -> str:
        """Why the call ends now that this answer is over, empty where it does not: a caller who interrupts
        the last answer keeps the call alive."""
        if self._answer is not answer:
            return ""
        self._answer = None
        return "" if answer.status == "interrupted" else self._reason
