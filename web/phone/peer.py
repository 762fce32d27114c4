"""The caller's telephone as the call sees it: what the call emits becomes the carrier's messages."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Protocol

from pipeline.events import (
    CallEnded,
    CallEvent,
    ClearPlayback,
    PausePlayback,
    PeerGone,
    ReplyAudio,
    ReplyDone,
    ReplyMark,
    ResumePlayback,
)
from web.phone.speaking import AgentAudio
from web.phone.wire import Carrier, Message, Started

_LAST_WORDS_SECONDS = 1.0
"""How long the mark after a farewell is waited for before the line is cut."""

_TAIL_SECONDS = 0.2
"""When nothing has followed a piece of a reply for so long, what the resampler and the framing still hold is
sent: later than any stutter, and before the carrier's buffer runs dry
(see `pipeline.speaking.playout.Pacing`)."""

_MOST_MARKS = 100
"""Marks that are waited for; a carrier that gives none back does not make the list grow."""

HANGS_UP_AFTER = ("goodbye", "silence", "max_length", "hang_up")
"""Ends of a call after which the telephone call is ended too. After the others the socket is closed, and the
carrier goes on with the call's document: a place for a fallback."""


class Line(Protocol):
    """A carrier's connection: messages in and out. Iteration ends when the other side has closed.

    `fault`: what broke the connection, empty where nothing did.
    """

    fault: str

    @property
    def round_trip(self) -> float:
        """Seconds to the carrier and back, as last measured; 0 when it has not been."""

    def messages(self) -> AsyncIterator[Message]: ...

    async def send(self, message: Message) -> None:
        """Raises PeerGone when the connection is closed or the other side has stopped reading."""

    async def close(self, code: int, reason: str) -> None: ...


class PhonePeer:
    """One stream's way out. `hung_up`: the caller's side has ended it; nothing is sent any more.

    `end_reason`: why the call ended, once it has.
    """

    def __init__(self, carrier: Carrier, started: Started, line: Line) -> None:
        self.holds_playback = carrier.holds_playback
        self.end_reason = "error"
        self.hung_up = False
        self._carrier = carrier
        self._line = line
        self._audio = AgentAudio(started.speaks)
        self._sent_ms = 0.0
        self._marks: dict[str, tuple[str, float]] = {}
        self._all_played = asyncio.Event()
        self._all_played.set()
        self._sending = asyncio.Lock()
        self._more = asyncio.Event()
        self._tail_due = 0.0

    async def send(self, event: CallEvent) -> None:
        """Translate and send. Raises PeerGone."""
        if isinstance(event, CallEnded):
            self.end_reason = event.reason
        if self.hung_up:
            raise PeerGone("the caller has hung up")
        async with self._sending:
            await self._send(event)

    async def send_tails(self) -> None:
        """Beside the call, until cancelled: keep no end of what has been said back."""
        loop = asyncio.get_running_loop()
        while True:
            await self._more.wait()
            await asyncio.sleep(self._tail_due - loop.time())
            async with self._sending:
                if loop.time() >= self._tail_due:
                    self._more.clear()
                    with contextlib.suppress(PeerGone):  # whoever sends next is told
                        await self._play(self._audio.flush())

    async def _send(self, event: CallEvent) -> None:
        match event:
            case ReplyAudio(samples=samples, rate=rate):
                await self._play(self._audio.push(samples, rate))
                self._sent_ms = event.offset_ms + samples.size / rate * 1000
                self._tail_due = asyncio.get_running_loop().time() + _TAIL_SECONDS
                self._more.set()
            case ReplyMark(name=name):
                self._await_mark(name, event.reply_id)
                await self._tell(self._carrier.mark(name))
            case ClearPlayback():
                self._audio.drop()
                self._marks.clear()
                self._all_played.set()
                await self._tell(self._carrier.clear())
            case PausePlayback():
                self._more.clear()  # the rest of the audio belongs to what follows the pause
                await self._tell(self._carrier.pause())
            case ResumePlayback():
                await self._tell(self._carrier.resume())
            case ReplyDone():
                await self._play(self._audio.flush())
            case CallEnded(reason=reason) if reason in HANGS_UP_AFTER:
                await self._last_words()

    def played(self, name: str) -> tuple[str, float] | None:
        """A mark came back: which reply, and how many milliseconds of it will have been heard before anything
        that is sent now can stop it. None for a mark that a clear has made meaningless.

        The mark tells how things were half a round trip ago, and a clear takes another half to arrive.
        """
        marked = self._marks.pop(name, None)
        if not self._marks:
            self._all_played.set()
        return None if marked is None else (marked[0], marked[1] + self._line.round_trip * 1000)

    def _await_mark(self, name: str, reply_id: str) -> None:
        self._marks[name] = (reply_id, self._sent_ms)
        self._all_played.clear()
        if len(self._marks) > _MOST_MARKS:
            del self._marks[next(iter(self._marks))]

    async def _play(self, frames: list[bytes]) -> None:
        for frame in frames:
            await self._line.send(self._carrier.audio(frame))

    async def _tell(self, messages: list[Message]) -> None:
        for message in messages:
            await self._line.send(message)

    async def _last_words(self) -> None:
        """The call is over when, by its clock, all has been played; the network is later."""
        try:
            async with asyncio.timeout(_LAST_WORDS_SECONDS):
                await self._all_played.wait()
        except TimeoutError:
            return
