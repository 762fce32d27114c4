"""A telephone call at a simulated carrier: the caller's frames go out every 20 ms, and what the bridge sends
is buffered, played in real time, marked and cleared as carriers do."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import deque
from dataclasses import dataclass

import numpy as np

from pipeline.audio import Audio, StreamResampler
from web.phone.encodings import FRAME_SECONDS
from web.phone.player import Player
from web.phone.simulator.line import Link, Network
from web.phone.simulator.shape import (
    Clear,
    HangUp,
    Mark,
    Message,
    NotAccepted,
    Pause,
    Play,
    Resume,
    Shape,
)

_AUDIBLE = 0.004
_LAST_MESSAGES_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class PlayedFrame:
    """20 ms that the caller heard, begun at `at` (seconds since the call began)."""

    at: float
    payload: bytes


class SimulatedCall:
    """`keep`: whether what the caller heard is kept. `refused`: what the carrier would not have accepted."""

    def __init__(
        self, shape: Shape, link: Link, *, network: Network | None = None, keep: bool = True
    ) -> None:
        self.player = Player()
        self.played: list[PlayedFrame] = []
        self.refused: list[str] = []
        self.over = asyncio.Event()
        self.last_audible: float | None = None
        self.clears = 0
        self.frames_sent = 0
        self.frames_played = 0
        self._shape = shape
        self._link = link
        self._network = network or Network()
        self._rng = random.Random(self._network.seed)
        self._keep = keep
        self._deaf = False
        self._speech: deque[bytes] = deque()
        self._said = asyncio.Event()
        self._said.set()
        self._swapped: Message | None = None
        self._up: asyncio.Queue[tuple[float, Message]] = asyncio.Queue()
        self._down: asyncio.Queue[tuple[float, Message]] = asyncio.Queue()
        self._up_due = self._down_due = 0.0
        self._began: float | None = None

    # ---- the caller

    def say(self, samples: Audio, rate: int) -> None:
        """Speak from the next frame on: float32 mono at `rate` Hz."""
        encoding = self._shape.encoding
        resampler = StreamResampler(rate, encoding.rate)
        heard = np.concatenate([resampler.push(samples), resampler.flush()])
        data = encoding.encode(heard)
        size = encoding.frame_bytes
        data += encoding.silence * (-len(data) % size)
        self._speech.extend(data[start : start + size] for start in range(0, len(data), size))
        self._said.clear()

    async def until_said(self) -> None:
        """Wait until the caller has said everything, or the call is over."""
        await self._said.wait()

    def press(self, digit: str) -> None:
        self._send(self._shape.digit(digit))

    def hang_up(self) -> None:
        """End the call from the caller's side."""
        for message in self._shape.ending():
            self._send(message)
        self.over.set()

    def stop_reading(self) -> None:
        """Half-dead: what is sent to the carrier is read no more, and nothing comes from it."""
        self._deaf = True

    @property
    def now(self) -> float:
        """Seconds since the call began."""
        return 0.0 if self._began is None else asyncio.get_running_loop().time() - self._began

    async def until_quiet(self, seconds: float) -> None:
        """Wait until the agent has been heard and then not been heard for so long, or the call is over."""
        while not self.over.is_set():
            if self.last_audible is not None and self.now - self.last_audible >= seconds:
                return
            await asyncio.sleep(FRAME_SECONDS)

    def decoded(self) -> list[tuple[float, Audio]]:
        """What the caller heard, by frames: when, and its samples."""
        return [(one.at, self._shape.encoding.decode(one.payload)) for one in self.played]

    def audible_since(self, when: float) -> list[float]:
        """When since then the caller heard the agent, by frames."""
        return [at for at, samples in self.decoded() if at >= when and _is_audible(samples)]

    # ---- the carrier

    async def run(self) -> None:
        """From the opening of the socket to its close, by whichever side."""
        self._began = asyncio.get_running_loop().time()
        for message in self._shape.opening():
            self._send(message)
        tasks = [
            asyncio.create_task(work)
            for work in (self._tick(), self._send_later(), self._receive(), self._obey_later())
        ]
        try:
            await self.over.wait()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._up.join(), _LAST_MESSAGES_SECONDS)
        finally:
            self._said.set()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await self._link.close()
        for task in tasks:
            if not task.cancelled() and (failure := task.exception()) is not None:
                raise failure

    async def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        assert self._began is not None
        ticks = 0
        while not self.over.is_set():
            for name in self.player.passed():
                self._send(self._shape.marked(name))
            self._play(self.player.tick())
            if ticks:
                self._speak(ticks - 1)
            ticks += 1
            await asyncio.sleep(self._began + ticks * FRAME_SECONDS - loop.time())

    def _play(self, frame: bytes | None) -> None:
        if frame is None:
            return
        self.frames_played += 1
        if self._keep:
            self.played.append(PlayedFrame(self.now, frame))
        if _is_audible(self._shape.encoding.decode(frame)):
            self.last_audible = self.now

    def _speak(self, ticks: int) -> None:
        """Send the frame that began this many frames after the call did and that is over now."""
        encoding = self._shape.encoding
        if not self._speech:
            self._said.set()
        frame = self._speech.popleft() if self._speech else encoding.silence * encoding.frame_bytes
        message = self._shape.media(frame, ticks * round(FRAME_SECONDS * 1000))
        self.frames_sent += 1
        if self._rng.random() < self._network.loss:
            return
        if self._swapped is None and self._rng.random() < self._network.swapped:
            self._swapped = message
            return
        self._send(message)
        if self._swapped is not None:
            self._send(self._swapped)
            self._swapped = None

    async def _receive(self) -> None:
        async for message in self._link.messages():
            if self._deaf:
                await asyncio.Event().wait()
            self._down_due = max(self._down_due, self._arrival())
            self._down.put_nowait((self._down_due, message))
        self.over.set()

    async def _obey_later(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due, message = await self._down.get()
            await asyncio.sleep(due - loop.time())
            try:
                self._obey(message)
            except (NotAccepted, KeyError, TypeError, ValueError) as error:
                self.refused.append(f"{type(error).__name__}: {error}")

    def _obey(self, message: Message) -> None:
        match self._shape.read(message):
            case Play(payload=payload):
                self._buffer(payload)
            case Mark(name=name):
                self.player.mark(name)
            case Clear(marks_return=marks_return):
                self.clears += 1
                marks = self.player.clear()
                for answer in self._shape.cleared():
                    self._send(answer)
                for name in marks if marks_return else ():
                    self._send(self._shape.marked(name))
            case Pause():
                self.player.paused = True
            case Resume():
                self.player.paused = False
            case HangUp():
                self.over.set()

    def _buffer(self, payload: bytes) -> None:
        encoding = self._shape.encoding
        payload += encoding.silence * (-len(payload) % encoding.frame_bytes)
        for start in range(0, len(payload), encoding.frame_bytes):
            self.player.put(payload[start : start + encoding.frame_bytes])

    def _send(self, message: Message) -> None:
        self._up_due = max(self._up_due, self._arrival())
        self._up.put_nowait((self._up_due, message))

    async def _send_later(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due, message = await self._up.get()
            await asyncio.sleep(due - loop.time())
            if not self._deaf:
                await self._link.send(message)
            self._up.task_done()

    def _arrival(self) -> float:
        delay = self._network.latency + self._network.jitter * self._rng.random()
        return asyncio.get_running_loop().time() + delay


def _is_audible(samples: Audio) -> bool:
    return float(np.abs(samples).max()) > _AUDIBLE
