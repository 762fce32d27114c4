"""Sends one reply's audio on a sample clock with a bounded lead, and knows what of it has been heard."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import numpy as np

from pipeline.audio import Audio
from pipeline.speaking.reply_sound import ReplySound, TimedSentence

_FRAME_SECONDS = 0.04


@dataclass(frozen=True, slots=True)
class Pacing:
    """`lead_seconds`: how far sending may be ahead of playing; a stutter shorter than it is not heard."""

    lead_seconds: float = 0.3


class Playout:
    """One reply on its way to the peer.

    `send_audio(samples, offset_ms)` and `begin_sentence(sentence)` put things on the wire. The playback
    position is paced: what was sent since the clock started, less the time paused; a peer's own reports
    replace the estimate. `starved` is awaited once if the first audio is late: it may put a filler on the
    sound.
    """

    def __init__(
        self,
        sound: ReplySound,
        *,
        send_audio: Callable[[Audio, float], Awaitable[None]],
        begin_sentence: Callable[[TimedSentence], Awaitable[None]],
        pacing: Pacing | None = None,
    ) -> None:
        self.sound = sound
        self.underruns = 0
        self._send_audio = send_audio
        self._begin_sentence = begin_sentence
        self._pacing = pacing or Pacing()
        self._cursor = 0
        self._announced = 0
        self._clock_start: float | None = None  # loop time at which position 0 would have been played
        self._paused_at: float | None = None
        self._running = asyncio.Event()
        self._running.set()
        self._stopped = False
        self._reported: tuple[float, float] | None = None  # (loop time, seconds) of the peer's last report
        self._stops: list[tuple[float, float]] = []  # (position, seconds): playing stood still

    @property
    def started(self) -> bool:
        """Whether any audio has been sent."""
        return self._clock_start is not None

    @property
    def sent_seconds(self) -> float:
        return self._cursor / self.sound.rate

    @property
    def paused(self) -> bool:
        return self._paused_at is not None

    def played_seconds(self) -> float:
        """Seconds of the reply that the caller has heard, by the peer's reports or else by pacing."""
        return max(0.0, min(self.sent_seconds, self._position()))

    def played_around(self, at: float, before: float, after: float) -> Audio:
        """What the caller's loudspeaker played from `before` to `after` seconds around loop time `at`.

        Silence where it played nothing of this reply, or where what it will play is not known yet.
        """
        here = self._position() - (self._now() - at)
        start, stop = (round(seconds * self.sound.rate) for seconds in (here - before, here + after))
        audio = np.zeros(stop - start, np.float32)
        first, last = max(start, 0), min(stop, self._cursor)
        if first < last:
            audio[first - start : last - start] = self.sound.read(first, last - first)
        return audio

    def report_played(self, seconds: float) -> None:
        """The peer says how much of the reply it has played."""
        self._reported = (self._now(), min(seconds, self.sent_seconds))

    def played_at(self, seconds: float, *, played: float) -> float:
        """Loop time at which the peer, now `played` seconds into the reply, was `seconds` into it.

        Pauses in between and times at which it ran dry are no playing.
        """
        now = self._now() if self._paused_at is None else self._paused_at
        return now - (played - seconds) - sum(stood for at, stood in self._stops if at > seconds)

    async def run(self) -> None:
        """Send until the sound is over and, by the clock, played; returns early after `stop`."""
        while not self._stopped:
            await self._running.wait()
            if await self.sound.more_than(self._cursor):
                await self._send_frame()
            elif self.started and (left := self.sound.seconds - self._paced()) > 1e-6:
                await asyncio.sleep(left)
            else:
                break

    async def _send_frame(self) -> None:
        await self._wait_for_lead()
        if self.paused or self._stopped:
            return
        await self._announce()
        samples = self.sound.read(self._cursor, round(_FRAME_SECONDS * self.sound.rate))
        offset_ms = self._cursor / self.sound.rate * 1000
        self._start_clock()
        self._cursor += samples.size
        await self._send_audio(samples, offset_ms)

    def pause(self) -> None:
        """Stop sending; what was sent may still be held by the peer."""
        if self._paused_at is None:
            self._paused_at = self._now()
            self._running.clear()

    def resume(self, *, rewind: bool) -> None:
        """Go on. `rewind`: the peer has dropped its buffer, so send again from the heard position."""
        if self._paused_at is None:
            return
        now = self._now()
        if self._clock_start is not None:
            played = self.played_seconds()
            self._stops.append((played, now - self._paused_at))
            if rewind:
                self._cursor = round(played * self.sound.rate)
            self._clock_start = now - played
            if self._reported is not None:
                self._reported = (now, played)
        self._paused_at = None
        self._running.set()

    def stop(self) -> None:
        """End it for good; the played position stays as it is."""
        if self._paused_at is None:
            self._paused_at = self._now()
        self._stopped = True
        self._running.set()
        self.sound.break_off()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _position(self) -> float:
        """Seconds of the reply at which playing is, by the same sources; beyond what was sent where it ran
        dry."""
        if self._clock_start is None:
            return 0.0
        now = self._now() if self._paused_at is None else self._paused_at
        if self._reported is not None:
            at, seconds = self._reported
            return seconds + max(0.0, now - at)
        return now - self._clock_start

    def _paced(self) -> float:
        return 0.0 if self._clock_start is None else self._now() - self._clock_start

    async def _wait_for_lead(self) -> None:
        ahead = self.sent_seconds - self._paced() - self._pacing.lead_seconds
        if self.started and ahead > 0:
            await asyncio.sleep(ahead)

    def _start_clock(self) -> None:
        """The first frame starts the clock; after the peer has run dry it goes on from where playing
        stopped."""
        now = self._now()
        if self._clock_start is None:
            self._clock_start = now
        elif now - self._clock_start > self.sent_seconds + 1e-9:
            self._stops.append((self.sent_seconds, now - self._clock_start - self.sent_seconds))
            self._clock_start = now - self.sent_seconds
            self.underruns += 1

    async def _announce(self) -> None:
        while self._announced < len(self.sound.sentences):
            sentence = self.sound.sentences[self._announced]
            if sentence.start_sample > self._cursor:
                return
            self._announced += 1
            await self._begin_sentence(sentence)
