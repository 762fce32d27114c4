"""One carrier's stream and one call, joined: what the carrier sends acts on the call, what the call emits is
sent."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

from pipeline.call import Call
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
from web.phone.hearing import RATE, CallerAudio
from web.phone.speaking import AgentAudio
from web.phone.wire import (
    BadMessage,
    Carrier,
    Heard,
    Message,
    Played,
    Pressed,
    Problem,
    Started,
    Stopped,
)
from web.realtime.pace import RealTimePace
from web.switchboard import CallRefused, Switchboard, conduct

log = logging.getLogger("rejoinder.phone")

_START_SECONDS = 10.0
_LAST_WORDS_SECONDS = 1.0
"""How long the mark after a farewell is waited for before the line is cut."""

_TAIL_SECONDS = 0.2
"""When nothing has followed a piece of a reply for so long, what the resampler and the framing still hold is
sent: later than any stutter, and before the carrier's buffer runs dry (see `pipeline.playout.Pacing`)."""

_MOST_MARKS = 100
"""Marks that are waited for; a carrier that gives none back does not make the list grow."""

_COMPLAINTS = 3
"""Messages of a call that are not understood and are logged one by one; the rest is counted."""

_MOST_MESSAGE_SECONDS = 5.0
"""More audio than this in one message is not a telephone's."""

HANGS_UP_AFTER = ("goodbye", "silence", "max_length", "hang_up")
"""Ends of a call after which the telephone call is ended too. After the others the socket is closed, and the
carrier goes on with the call's document: a place for a fallback."""

_CLOSE_CODES = {"shutdown": 1001, "error": 1011}
_POLICY_VIOLATION = 1008
_TRY_AGAIN_LATER = 1013


class Line(Protocol):
    """A carrier's connection: messages in and out. Iteration ends when the other side has closed."""

    @property
    def round_trip(self) -> float:
        """Seconds to the carrier and back, as last measured; 0 when it has not been."""

    def messages(self) -> AsyncIterator[Message]: ...

    async def send(self, message: Message) -> None:
        """Raises PeerGone when the connection is closed or the other side has stopped reading."""

    async def close(self, code: int, reason: str) -> None: ...


HangUp = Callable[[Started], Awaitable[None]]
"""Ends the telephone call at the carrier."""


async def leave_to_the_document(started: Started) -> None:
    """For carriers without credentials: closing the socket is all that is done."""


class PhonePeer:
    """The caller's telephone, as the call sees it."""

    def __init__(self, carrier: Carrier, started: Started, line: Line) -> None:
        self.holds_playback = carrier.holds_playback
        self.end_reason = "error"
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
                await self._tell(self._carrier.pause())
            case ResumePlayback():
                await self._tell(self._carrier.resume())
            case ReplyDone():
                await self._play(self._audio.flush())
            case CallEnded(reason=reason):
                self.end_reason = reason
                if reason in HANGS_UP_AFTER:
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


class PhoneFrontEnd:
    """Runs the calls of one carrier: one for each stream.

    `shown`: what the log may keep of a caller's number. `hang_up`: ends the telephone call at the carrier.
    """

    def __init__(
        self,
        switchboard: Switchboard,
        *,
        shown: Callable[[str], str] = lambda number: number,
        hang_up: HangUp = leave_to_the_document,
    ) -> None:
        self._switchboard = switchboard
        self._shown = shown
        self._hang_up = hang_up

    async def serve(self, line: Line, carrier: Carrier) -> None:
        """One stream, from its opening to its close. Never raises for what a carrier does."""
        messages = line.messages()
        complaints = Complaints(carrier.name)
        try:
            async with asyncio.timeout(_START_SECONDS):
                started = await _first_start(carrier, messages, complaints)
        except TimeoutError:
            complaints.add(BadMessage(f"nothing has started after {_START_SECONDS:g} s"))
            started = None
        if started is None:
            complaints.summarise()
            await line.close(_POLICY_VIOLATION, "no start")
            return
        peer = PhonePeer(carrier, started, line)
        try:
            await self._call(line, carrier, started, peer, messages, complaints)
        except CallRefused as refused:
            log.warning("%s call %s refused: %s", carrier.name, started.call_id, refused.message)
            await line.close(_TRY_AGAIN_LATER, refused.code)

    async def _call(
        self,
        line: Line,
        carrier: Carrier,
        started: Started,
        peer: PhonePeer,
        messages: AsyncIterator[Message],
        complaints: Complaints,
    ) -> None:
        opened = self._switchboard.line(
            peer,
            agent=started.agent,
            origin=carrier.name,
            caller=self._shown(started.caller) if started.caller else None,
            variables=started.variables,
        )
        with opened as call:
            complaints.call_id = call.id
            log.info(
                "call %s: %s call %s, stream %s", call.id, carrier.name, started.call_id, started.stream_id
            )
            listener = _Listener(call, carrier, started, peer, complaints)
            tails = asyncio.create_task(peer.send_tails())
            try:
                await conduct(call, listener.listen(messages))
            finally:
                tails.cancel()
                await asyncio.wait([tails])
        listener.log_losses()
        complaints.summarise()
        if peer.end_reason in HANGS_UP_AFTER and not listener.hung_up:
            await self._end_the_telephone_call(line, carrier, started, call.id)
        await line.close(_CLOSE_CODES.get(peer.end_reason, 1000), peer.end_reason)

    async def _end_the_telephone_call(
        self, line: Line, carrier: Carrier, started: Started, call_id: str
    ) -> None:
        try:
            for message in carrier.hang_up():
                await line.send(message)
            await self._hang_up(started)
        except PeerGone:
            log.info("call %s: the line was closed before it was hung up", call_id)


class Complaints:
    """Keeps a carrier that talks nonsense from filling the log."""

    def __init__(self, carrier: str) -> None:
        self.call_id = "(not begun)"
        self.count = 0
        self._carrier = carrier

    def add(self, bad: BadMessage) -> None:
        self.count += 1
        if self.count <= _COMPLAINTS:
            log.warning("call %s: %s: %s", self.call_id, self._carrier, bad)

    def summarise(self) -> None:
        if self.count > _COMPLAINTS:
            log.warning("call %s: %s: %d messages not understood", self.call_id, self._carrier, self.count)


async def _first_start(
    carrier: Carrier, messages: AsyncIterator[Message], complaints: Complaints
) -> Started | None:
    """Read up to the start of the stream; None when the socket closes, or the stream stops, before it."""
    async for message in messages:
        try:
            said = carrier.read(message)
        except BadMessage as bad:
            complaints.add(bad)
            continue
        if isinstance(said, Started):
            return said
        if isinstance(said, Stopped):
            return None
        if said is not None:
            complaints.add(BadMessage(f"{type(said).__name__.lower()} before the start"))
    return None


class _Listener:
    """Acts on what the carrier sends during a call."""

    def __init__(
        self, call: Call, carrier: Carrier, started: Started, peer: PhonePeer, complaints: Complaints
    ) -> None:
        self.hung_up = False
        self._call = call
        self._carrier = carrier
        self._peer = peer
        self._complaints = complaints
        self._audio = CallerAudio(started.hears)
        self._most_bytes = round(_MOST_MESSAGE_SECONDS * started.hears.rate) * started.hears.sample_bytes
        self._pace = RealTimePace()

    async def listen(self, messages: AsyncIterator[Message]) -> None:
        """Until the carrier stops the stream or closes the socket: to the call both are the caller's end."""
        async for message in messages:
            try:
                said = self._carrier.read(message)
                if isinstance(said, Stopped):
                    break
                await self._act(said)
            except BadMessage as bad:
                self._complaints.add(bad)
        self.hung_up = True
        self._call.hang_up()

    def log_losses(self) -> None:
        """Say what of the caller's audio was late or lost, if any."""
        late, filled = self._audio.order.late, self._audio.filler.filled
        if late or filled:
            log.info("call %s: %d frames came too late, %d were lost", self._call.id, late, filled)

    async def _act(self, said: object) -> None:
        match said:
            case Heard():
                await self._hear(said)
            case Played(name=name):
                if (position := self._peer.played(name)) is not None:
                    self._call.playback(*position)
            case Pressed(digit=digit):
                self._call.digit(digit)
            case Started():
                raise BadMessage("a second start on one socket; the first goes on")
            case Problem(text=text):
                log.warning("call %s: %s says: %s", self._call.id, self._carrier.name, text)

    async def _hear(self, heard: Heard) -> None:
        """Pass the audio on, no faster than it was spoken."""
        if len(heard.payload) > self._most_bytes:
            raise BadMessage(f"{len(heard.payload)} bytes of audio in one message")
        audio = self._audio.push(heard)
        wait = self._pace.wait_before(audio.size / RATE, asyncio.get_running_loop().time())
        if wait > 0:
            await asyncio.sleep(wait)
        self._call.hear(audio)
