"""The caller's audio as it comes: a bounded backlog, its clock, and the last seconds by position."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

import numpy as np

from pipeline.audio import CALLER_RATE, Audio
from pipeline.hearing.audio_clock import AudioClock

log = logging.getLogger("rejoinder.call")

_BACKLOG_SECONDS = 10.0
"""Audio waiting to be listened to; a machine that is further behind drops what comes and says so."""

_MEMORY_SECONDS = 10.0
"""Audio kept for pre-roll and for the end-of-turn model."""


class Microphone:
    """Positions are samples of 16 kHz mono audio since the call began; dropped audio has no position."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.end = 0
        self.dropped_seconds = 0.0
        self._now = now
        self._clock = AudioClock()
        self._backlog: deque[Audio] = deque()
        self._backlog_samples = 0
        self._received = 0
        self._cuts: deque[int] = deque()
        self._came = asyncio.Event()
        self._memory: deque[Audio] = deque()
        self._memory_samples = 0

    def hear(self, audio: Audio) -> None:
        """Take float32 audio of any length; never blocks."""
        if not audio.size:
            return
        if self._backlog_samples + audio.size > _BACKLOG_SECONDS * CALLER_RATE:
            self.dropped_seconds += audio.size / CALLER_RATE
            log.warning("listening is behind: %.1f s of a caller's audio lost", self.dropped_seconds)
            return
        self._clock.arrived(audio.size, self._now())
        self._backlog.append(audio)
        self._backlog_samples += audio.size
        self._received += audio.size
        self._came.set()

    @property
    def waiting(self) -> bool:
        """Whether audio has come that nobody has listened to yet."""
        return bool(self._backlog)

    def cut(self) -> int:
        """What has come so far is to be listened to apart from what follows. Returns the position between
        them."""
        if self._backlog and (not self._cuts or self._cuts[-1] != self._received):
            self._cuts.append(self._received)
        return self._received

    async def next(self) -> Audio:
        """All audio that has come since the last time, at least one sample; up to a cut, where there is
        one."""
        while not self._backlog:
            self._came.clear()
            await self._came.wait()
        size = self._backlog_samples
        if self._cuts:
            size -= self._received - self._cuts.popleft()
        audio = np.concatenate(self._backlog)
        rest = audio[size:]
        self._backlog.clear()
        if rest.size:
            self._backlog.append(rest)
        self._backlog_samples = rest.size
        return audio[:size]

    def listened_to(self, audio: Audio) -> None:
        """`audio` has been through voice activity: `end` moves on, and it can be recalled."""
        self.end += audio.size
        self._memory.append(audio)
        self._memory_samples += audio.size
        while self._memory_samples - self._memory[0].size > _MEMORY_SECONDS * CALLER_RATE:
            self._memory_samples -= self._memory.popleft().size

    def since(self, sample: int) -> Audio:
        """The audio from position `sample` to `end`, or what is left of it."""
        start = max(sample, self.end - self._memory_samples, 0)
        if start >= self.end:
            return np.zeros(0, np.float32)
        return np.concatenate(self._memory)[-(self.end - start) :]

    def time_of(self, sample: int) -> float:
        """Loop time at which the sample at this position was spoken."""
        return self._clock.time_of(sample)
