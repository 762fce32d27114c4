"""Playback by the clock: frames queue up, one is played every 20 ms, and marks between them pass by."""

from __future__ import annotations

from collections import deque

MOST_FRAMES = 3000
"""One minute; more is more than anyone means to play."""


class Player:
    """What a line has been sent and has not played. Pure: `tick` is a frame's time passing."""

    def __init__(self) -> None:
        self.paused = False
        self.dropped = 0
        self._queue: deque[bytes | str] = deque()
        self._frames = 0

    @property
    def frames(self) -> int:
        """Frames that wait."""
        return self._frames

    def put(self, frame: bytes) -> None:
        """Queue a frame; beyond the limit it is dropped and counted."""
        if self._frames >= MOST_FRAMES:
            self.dropped += 1
            return
        self._frames += 1
        self._queue.append(frame)

    def mark(self, name: str) -> None:
        """A point after the frames queued so far."""
        self._queue.append(name)

    def clear(self) -> list[str]:
        """Drop everything; the marks that waited."""
        marks = [one for one in self._queue if isinstance(one, str)]
        self._queue.clear()
        self._frames = 0
        return marks

    def passed(self) -> list[str]:
        """The marks that stand before the next frame: all that precedes them has been played."""
        marks: list[str] = []
        while not self.paused and self._queue and isinstance(self._queue[0], str):
            marks.append(str(self._queue.popleft()))
        return marks

    def tick(self) -> bytes | None:
        """The frame that plays now; None while paused or when there is none."""
        if self.paused or not self._queue:
            return None
        frame = self._queue[0]
        if not isinstance(frame, bytes):
            return None
        self._queue.popleft()
        self._frames -= 1
        return frame
