"""Text that remembers where it was written."""

from __future__ import annotations


class Tracked:
    """Characters, each with the range of the written text that it stands for.

    Ranges never go back: a character's range starts no earlier than the one before it.
    """

    def __init__(self) -> None:
        self.characters: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []

    def __len__(self) -> int:
        return len(self.characters)

    @property
    def text(self) -> str:
        return "".join(self.characters)

    @property
    def last(self) -> str:
        """The last character, empty when there is none."""
        return self.characters[-1] if self.characters else ""

    def add(self, text: str, start: int, end: int) -> None:
        """Append characters that all stand for the written range ``[start, end)``."""
        self.characters += text
        self.starts += [start] * len(text)
        self.ends += [end] * len(text)

    def copy(self, other: Tracked, start: int, end: int) -> None:
        """Append a slice of another text with its ranges."""
        self.characters += other.characters[start:end]
        self.starts += other.starts[start:end]
        self.ends += other.ends[start:end]

    def pop(self) -> None:
        """Drop the last character."""
        self.characters.pop()
        self.starts.pop()
        self.ends.pop()
