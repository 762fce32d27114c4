"""One carrier's stream and one call, joined, from the stream's start to the end of the telephone call."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from pipeline.call import Call
from pipeline.events import PeerGone
from web.paced_audio import PacedAudio
from web.phone.hearing import CallerAudio
from web.phone.peer import HANGS_UP_AFTER, Line, PhonePeer
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
from web.switchboard import CallRefused, Switchboard, conduct

log = logging.getLogger("rejoinder.phone")

_START_SECONDS = 10.0
_COMPLAINTS = 3
"""Messages of a call that are not understood and are logged one by one; the rest is counted."""

_MOST_MESSAGE_SECONDS = 5.0
"""More audio than this in one message is not a telephone's."""

_DEAF_MESSAGES = 100
"""A carrier that has sent so many (two seconds of frames) and nothing to hear in them sends it wrongly."""

_CLOSE_CODES = {"shutdown": 1001, "error": 1011}
_POLICY_VIOLATION = 1008
_TRY_AGAIN_LATER = 1013


HangUp = Callable[[Started], Awaitable[None]]
"""Ends the telephone call at the carrier."""


async def leave_to_the_document(started: Started) -> None:
    """For carriers without credentials: closing the socket is all that is done."""


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
            listener = _CarrierReader(call, carrier, started, peer, complaints)
            tails = asyncio.create_task(peer.send_tails())
            try:
                await conduct(call, listener.listen(messages))
            finally:
                tails.cancel()
                await asyncio.wait([tails])
        listener.log_losses()
        complaints.summarise()
        if line.fault:
            log.warning("call %s: %s", call.id, line.fault)
        if peer.end_reason in HANGS_UP_AFTER and not peer.hung_up:
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


class _CarrierReader:
    """Acts on what the carrier sends during a call. Only audio waits for its time."""

    def __init__(
        self, call: Call, carrier: Carrier, started: Started, peer: PhonePeer, complaints: Complaints
    ) -> None:
        self._call = call
        self._carrier = carrier
        self._encoding = started.hears
        self._peer = peer
        self._complaints = complaints
        self._audio = CallerAudio(started.hears)
        self._most_bytes = round(_MOST_MESSAGE_SECONDS * started.hears.rate) * started.hears.sample_bytes
        self._paced = PacedAudio(call.hear)
        self._messages = 0
        self._heard_any = False
        self._lost_seconds = 0.0

    async def listen(self, messages: AsyncIterator[Message]) -> None:
        """Until the carrier stops the stream or closes the socket: to the call both are the caller's end."""
        async with asyncio.TaskGroup() as group:
            pacing = group.create_task(self._paced.run())
            async for message in messages:
                try:
                    said = self._carrier.read(message)
                    if isinstance(said, Stopped):
                        break
                    self._act(said)
                except BadMessage as bad:
                    self._complaints.add(bad)
                self._messages += 1
                if self._messages == _DEAF_MESSAGES and not self._heard_any:
                    self._tell_that_it_is_deaf()
            pacing.cancel()
        self._peer.hung_up = True
        self._call.hang_up()

    def log_losses(self) -> None:
        """Say what of the caller's audio was late or lost, if any."""
        late, filled = self._audio.order.late, self._audio.filler.filled
        if late or filled:
            log.info("call %s: %d frames came too late, %d were lost", self._call.id, late, filled)
        if self._lost_seconds:
            log.warning("call %s: %.1f s of audio lost", self._call.id, self._lost_seconds)

    def _act(self, said: object) -> None:
        match said:
            case Heard():
                self._hear(said)
            case Played(name=name):
                if (position := self._peer.played(name)) is not None:
                    self._call.playback(*position)
            case Pressed(digit=digit):
                self._call.digit(digit)
            case Started():
                raise BadMessage("a second start on one socket; the first goes on")
            case Problem(text=text):
                log.warning("call %s: %s says: %s", self._call.id, self._carrier.name, text)

    def _hear(self, heard: Heard) -> None:
        """Pass the audio on, no faster than it was spoken."""
        size = len(heard.payload)
        if size > self._most_bytes:
            raise BadMessage(f"{size} bytes of audio in one message")
        seconds = size / self._encoding.sample_bytes / self._encoding.rate
        if not self._paced.has_room(seconds):
            self._lose(seconds)
            return
        audio = self._audio.push(heard)
        self._heard_any = self._heard_any or audio.size > 0
        self._paced.put(audio)

    def _lose(self, seconds: float) -> None:
        if not self._lost_seconds:
            log.warning(
                "call %s: %s sends faster than speech: %.0f s wait to be heard, and what comes now is lost",
                self._call.id,
                self._carrier.name,
                self._paced.seconds,
            )
        self._lost_seconds += seconds

    def _tell_that_it_is_deaf(self) -> None:
        """Once a call, however long it goes on like that."""
        log.warning(
            "call %s: %s: no audio of the caller in the first %d messages",
            self._call.id,
            self._carrier.name,
            self._messages,
        )
