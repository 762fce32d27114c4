"""A loudspeaker on paper: what of a reply would have been played by now."""

from __future__ import annotations


class Speaker:
    """Plays one item at a time, in real time, as far as it has been received; can be paused and cleared.

    Times are seconds of one clock, never going back.
    """

    def __init__(self) -> None:
        self.item: str | None = None
        self.paused = False
        self._received = 0.0
        self._played = 0.0
        self._at = 0.0

    def receive(self, item: str, seconds: float, now: float) -> None:
        """More of an item has come; a new item replaces what is left of the one before."""
        self._advance(now)
        if item != self.item:
            self.item, self._received, self._played, self.paused = item, 0.0, 0.0, False
        self._received += seconds

    def pause(self, now: float) -> None:
        self._advance(now)
        self.paused = True

    def resume(self, now: float) -> None:
        self._advance(now)
        self.paused = False

    def clear(self, now: float) -> None:
        """Drop what has not been played."""
        self._advance(now)
        self._received = self._played
        self.paused = False

    def played_ms(self, now: float) -> float:
        """Of the current item."""
        self._advance(now)
        return 1000 * self._played

    def _advance(self, now: float) -> None:
        if not self.paused:
            self._played = min(self._received, self._played + now - self._at)
        self._at = now
