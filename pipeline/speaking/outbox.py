"""What a call sends, in order, through one bounded queue to its peer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pipeline.events import CallEvent, Peer, PeerGone, ReplyAudio, ReplyMark

_LIMIT = 2000
"""Events waiting for a peer that does not read; beyond it the peer counts as gone."""


class Outbox:
    """Keeps the order of events and drops the audio of replies that were cleared before it went out."""

    def __init__(self, peer: Peer, *, sent: Callable[[CallEvent], None]) -> None:
        self._peer = peer
        self._sent = sent
        self._queue: asyncio.Queue[CallEvent] = asyncio.Queue(maxsize=_LIMIT)

    def put(self, event: CallEvent) -> None:
        """Queue an event. Raises PeerGone when the peer has stopped reading."""
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            raise PeerGone(f"the peer left {_LIMIT} events unread") from None

    def clear(self, reply_id: str) -> None:
        """Drop this reply's audio that is still queued."""
        kept = []
        while not self._queue.empty():
            event = self._queue.get_nowait()
            if not (isinstance(event, ReplyAudio | ReplyMark) and event.reply_id == reply_id):
                kept.append(event)
        for event in kept:
            self._queue.put_nowait(event)

    async def run(self) -> None:
        """Send until cancelled. Raises PeerGone."""
        while True:
            event = await self._queue.get()
            await self._peer.send(event)
            self._sent(event)

    async def drain(self) -> None:
        """Send what is queued, at the end of a call."""
        while not self._queue.empty():
            event = self._queue.get_nowait()
            await self._peer.send(event)
            self._sent(event)
