"""A caller for benchmarks: talks to a call in real time and keeps what came back, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from fixtures.speech import RATE
from pipeline.audio import Audio
from pipeline.call import Call
from pipeline.events import CallEvent, ReplyDone, TurnLogged

PACKET_SECONDS = 0.02

E = TypeVar("E", bound=CallEvent)


@dataclass
class Caller:
    """A peer that speaks what it is given at real-time pace, with silence between, and keeps all events."""

    holds_playback: bool = True
    events: list[tuple[float, CallEvent]] = field(default_factory=list)
    _speech: list[Audio] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, event: CallEvent) -> None:
        """Take an event from the call."""
        self.events.append((asyncio.get_running_loop().time(), event))
        self._changed.set()

    def say(self, audio: Audio) -> None:
        """Speak from the next packet on."""
        self._speech.append(audio)

    async def stream(self, call: Call) -> None:
        """Send packets until cancelled: speech where there is some, else silence."""
        loop = asyncio.get_running_loop()
        size = round(PACKET_SECONDS * RATE)
        due = loop.time()
        while True:
            due += PACKET_SECONDS
            await asyncio.sleep(max(0.0, due - loop.time()))
            call.hear(self._next_packet(size))

    def _next_packet(self, size: int) -> Audio:
        packet = np.zeros(size, np.float32)
        if self._speech:
            head = self._speech[0]
            packet[: min(size, head.size)] = head[:size]
            self._speech[0] = head[size:]
            if not self._speech[0].size:
                self._speech.pop(0)
        return packet

    async def wait_for(
        self, kind: type[E], matches: Callable[[E], bool] = lambda _: True, seconds: float = 60
    ) -> E:
        """The first matching event from now on. Raises TimeoutError."""
        seen = len(self.events)
        async with asyncio.timeout(seconds):
            while True:
                for _, event in self.events[seen:]:
                    seen += 1
                    if isinstance(event, kind) and matches(event):
                        return event
                self._changed.clear()
                await self._changed.wait()

    async def ask(self, audio: Audio) -> list[dict[str, Any]]:
        """Say one question and wait until its answer is over; returns the records of its turns.

        There are several where a pause was taken for the end: the caller went on and interrupted the answer.
        """
        self.say(audio)
        records: list[dict[str, Any]] = []
        while not records or records[-1]["status"] == "interrupted":
            records.append((await self.wait_for(TurnLogged)).record)
        return records

    async def greeting_over(self) -> None:
        """Wait for the end of what the agent says unasked."""
        await self.wait_for(ReplyDone, lambda event: event.turn == 0)


async def with_call(call: Call, caller: Caller, talk: Callable[[], Any]) -> None:
    """Run `talk` (a coroutine function) while the call and the caller's microphone run; then hang up."""
    running = asyncio.ensure_future(call.run())
    streaming = asyncio.ensure_future(caller.stream(call))
    try:
        await talk()
    finally:
        streaming.cancel()
        call.hang_up()
        await asyncio.wait({running, streaming})
    running.result()
