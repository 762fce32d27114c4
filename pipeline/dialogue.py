"""What was said in a call: the memory that the language stage is prompted with."""

from __future__ import annotations

from llm.language_model import Message


class Dialogue:
    """The committed messages of one call, oldest first, after the system prompt.

    Nothing of a draft gets in: the caller's words enter at commit, the agent's words when they were heard.
    """

    def __init__(self, system_prompt: str) -> None:
        self._system = Message("system", system_prompt)
        self._messages: list[Message] = []

    def caller_said(self, text: str) -> None:
        self._messages.append(Message("user", text))

    def agent_said(self, text: str, ids: tuple[int, ...] | None = None) -> None:
        """What the caller heard. `ids`: the reply's exact tokens, only when all of it was heard."""
        if text.strip():
            self._messages.append(Message("assistant", text, ids))

    def amend_agent(self, before: str, after: str) -> None:
        """The caller heard `after` of the agent's last words, not `before` as was thought."""
        if before.strip():
            self._messages.pop()
        self.agent_said(after)

    def messages(self, growing: str = "") -> list[Message]:
        """The prompt so far, with the caller's not yet committed words as a last message when there are
        any."""
        tail = [Message("user", growing)] if growing else []
        return [self._system, *self._messages, *tail]

    @property
    def last_agent_words(self) -> str:
        """What the caller heard last from the agent, empty when it was the caller who spoke last."""
        last = self._messages[-1] if self._messages else None
        return last.text if last is not None and last.role == "assistant" else ""
