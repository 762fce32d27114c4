"""The keys of the caller's telephone: digits pressed one after the other are one input. Pure."""

from __future__ import annotations

_PAUSE_SECONDS = 1.5
"""Without a key for that long the digits pressed so far are an input; `#` ends it at once."""

_MOST_DIGITS = 40


class Keypad:
    """Collects one call's keys."""

    def __init__(self) -> None:
        self._digits = ""
        self._due: float | None = None

    def press(self, key: str, now: float) -> str:
        """One key. Returns the digits that it ends, mostly none; what is no key of a telephone is ignored."""
        if key == "#" and self._digits:
            return self._take()
        if key in set("0123456789*#") and len(self._digits) < _MOST_DIGITS:
            self._digits += key
            self._due = now + _PAUSE_SECONDS
        return ""

    def due(self, now: float) -> str:
        """The digits after which nothing was pressed for long enough; mostly none."""
        return self._take() if self._due is not None and now >= self._due else ""

    def _take(self) -> str:
        digits, self._digits, self._due = self._digits, "", None
        return digits
