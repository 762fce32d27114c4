"""A caller's audio and what was sent behind it, in order, no faster than it was spoken."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

import numpy as np

from pipeline.audio import CALLER_RATE, Audio

Command = Callable[[], Awaitable[None]]

_SLICE = CALLER_RATE // 10
_NO_WAIT = 0.001
"""Seconds that are not worth a timer."""


class RealTimePace:
    """A leaky bucket of audio seconds that drains as time passes.

    A call is timed on the caller's audio, so audio may not run ahead of the clock: a recording sent in one go
    is heard as slowly as it was spoken. `lead_seconds` may run ahead, so that jitter passes unhindered; what
    a stalled network delivers late, up to `stall_seconds`, may come at once.
    """

    def __init__(self, lead_seconds: float = 0.5, stall_seconds: float = 5.0) -> None:
        self._lead = lead_seconds
        self._stall = stall_seconds
        self._level = 0.0
        self._at: float | None = None

    def wait_before(self, audio_seconds: float, now: float) -> float:
        """Seconds from `now` until this much more audio may be passed on."""
        return max(0.0, self._level_at(now) + audio_seconds - self._lead)

    def passed(self, audio_seconds: float, now: float) -> None:
        """This much audio has been passed on."""
        self._level = self._level_at(now) + audio_seconds
        self._at = now

    def _level_at(self, now: float) -> float:
        return self._level if self._at is None else max(-self._stall, self._level - (now - self._at))


class PacedAudio:
    """The queue between a socket's reader, which never waits for it, and one call's ears.

    Audio is float32 mono at 16 kHz. A command that was put behind audio is carried out once that audio has
    been passed on; what steers the call does not come here. While nothing waits, everything happens at once.
    `run` belongs beside the reader. Bounded: ask `has_room` and `takes_commands` first.
    """

    def __init__(
        self,
        hear: Callable[[Audio], None],
        *,
        most_seconds: float = 300.0,
        most_commands: int = 100,
    ) -> None:
        self.most_seconds = most_seconds
        self.most_commands = most_commands
        self._hear = hear
        self._pace = RealTimePace()
        self._waiting: deque[Audio | Command] = deque()
        self._samples = 0
        self._commands = 0
        self._carrying_out = False
        self._came = asyncio.Event()

    @property
    def seconds(self) -> float:
        """Audio that waits."""
        return self._samples / CALLER_RATE

    def has_room(self, seconds: float) -> bool:
        """Whether so much more audio may wait."""
        return self.seconds + seconds <= self.most_seconds

    @property
    def takes_commands(self) -> bool:
        """Whether one more command may wait."""
        return self._commands < self.most_commands

    def put(self, audio: Audio) -> None:
        """Audio of any length: heard now as far as the pace allows, the rest later."""
        if not audio.size:
            return
        last = self._waiting[-1] if self._waiting else None
        if isinstance(last, np.ndarray) and last.size < _SLICE:
            self._waiting[-1] = np.concatenate([last, audio])  # many tiny messages are few pieces
        else:
            self._waiting.append(audio)
        self._samples += audio.size
        if not self._carrying_out:
            self._pass_on()
        self._came.set()

    async def behind(self, command: Command) -> None:
        """Carry out a command behind the audio that was put so far: now when none waits, else in `run`."""
        if not self._waiting and not self._carrying_out:
            await self._carry_out(command)
        else:
            self._waiting.append(command)
            self._commands += 1
            self._came.set()

    def clear(self) -> None:
        """Forget the audio that waits, but for what a waiting command was sent behind."""
        while self._waiting and isinstance(last := self._waiting[-1], np.ndarray):
            self._waiting.pop()
            self._samples -= last.size

    async def run(self) -> None:
        """Until cancelled: pass on what waits when its time has come. Raises what a command raises."""
        while True:
            self._came.clear()
            while self._waiting:
                if (wait := self._pass_on()) > 0:
                    await asyncio.sleep(wait)
                elif self._waiting:
                    command = self._waiting.popleft()
                    assert not isinstance(command, np.ndarray)
                    self._commands -= 1
                    await self._carry_out(command)
            await self._came.wait()

    async def _carry_out(self, command: Command) -> None:
        self._carrying_out = True
        try:
            await command()
        finally:
            self._carrying_out = False

    def _pass_on(self) -> float:
        """Let the call hear what may be heard by now, up to the next command. Seconds until it is time for
        more, 0 where no audio is next."""
        now = asyncio.get_running_loop().time()
        while self._waiting and isinstance(first := self._waiting[0], np.ndarray):
            piece, rest = first[:_SLICE], first[_SLICE:]
            wait = self._pace.wait_before(piece.size / CALLER_RATE, now)
            if wait > _NO_WAIT:
                return wait
            if rest.size:
                self._waiting[0] = rest
            else:
                self._waiting.popleft()
            self._samples -= piece.size
            self._pace.passed(piece.size / CALLER_RATE, now)
            self._hear(piece)
        return 0.0
