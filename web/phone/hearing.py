"""The caller's audio on its way in: put in order, filled where frames were lost, lifted where it is quiet,
brought to the rate at which the service listens."""

from __future__ import annotations

import numpy as np

from pipeline.audio import CALLER_RATE, Audio, StreamResampler
from web.phone.doubling import Doubler
from web.phone.encodings import FRAME_SECONDS, Encoding, StreamDecoder
from web.phone.wire import Heard

_HELD = 3
"""A chunk that has not come when this many later ones have is lost (60 ms)."""

_JUMP_BACK = 50
"""A chunk that is so many behind (a second) is the first of a new count, not a late one."""

_JUMP_SECONDS = 1.0
"""A longer hole in the carrier's clock is a new beginning, not lost audio."""

_FADE = (0.5, 0.25, 0.1)
"""How loud the last frame is repeated in the first lost ones; after these there is silence."""

_LIFTED_PEAK = 0.25
_NOISE_PEAK = 0.006
_MOST_GAIN = 8.0
_FORGETTING_SECONDS = 10.0
_RISE_A_SECOND = 2.0


class ChunkOrder:
    """Sorts numbered chunks. A stream in order passes at once; a missing chunk is waited for, for a while."""

    def __init__(self) -> None:
        self.late = 0
        self._next: int | None = None
        self._held: dict[int, Heard] = {}

    def push(self, heard: Heard) -> list[Heard]:
        """The chunks that may be listened to now, in order."""
        if heard.chunk is None:
            return [heard]
        if self._next is not None and heard.chunk < self._next:
            if self._next - heard.chunk < _JUMP_BACK:
                self.late += 1
                return []
            self._next = None
            self._held.clear()
        self._held[heard.chunk] = heard
        if self._next is None or len(self._held) > _HELD:
            self._next = min(self._held)
        ready = []
        while self._next in self._held:
            ready.append(self._held.pop(self._next))
            self._next += 1
        return ready


class LossFiller:
    """Puts audio where the carrier's clock says that some is missing, so that time in the call stays true.

    The last frame is repeated, fading, and then there is silence. A hole counts from a frame and a half on:
    carriers' clocks waver by some milliseconds.
    """

    def __init__(self, rate: int) -> None:
        self.filled = 0
        self._rate = rate
        self._frame = round(rate * FRAME_SECONDS)
        self._origin_ms: int | None = None
        self._samples = 0
        self._last: Audio = np.zeros(0, np.float32)

    def push(self, samples: Audio, at_ms: int | None) -> Audio:
        """The samples, with what was missing before them."""
        missing = self._missing(at_ms)
        parts = [self._repeat(n) for n in range(missing)] + [samples]
        self.filled += missing
        self._samples += missing * self._frame + samples.size
        self._last = samples[-self._frame :]
        return np.concatenate(parts) if missing else samples

    def _missing(self, at_ms: int | None) -> int:
        if at_ms is None:
            return 0
        if self._origin_ms is None:
            self._origin_ms, self._samples = at_ms, 0
        behind = (at_ms - self._origin_ms) / 1000 - self._samples / self._rate
        if abs(behind) > _JUMP_SECONDS:
            self._origin_ms, self._samples = at_ms, 0
            return 0
        return round(behind / FRAME_SECONDS) if behind > 1.5 * FRAME_SECONDS else 0

    def _repeat(self, number: int) -> Audio:
        frame = np.zeros(self._frame, np.float32)
        if number < len(_FADE):
            frame[: self._last.size] = self._last * np.float32(_FADE[number])
        return frame


class QuietCallerGain:
    """Lifts a quiet caller towards the level of an ordinary one, by 18 dB at most; makes nobody quieter.

    The level is the highest peak of the last seconds; what stays under the level of line noise lifts nothing.
    """

    def __init__(self, rate: int) -> None:
        self.gain = 1.0
        self._rate = rate
        self._peak = 0.0

    def push(self, samples: Audio) -> Audio:
        if not samples.size:
            return samples
        seconds = samples.size / self._rate
        peak = float(np.abs(samples).max())
        self._peak = max(peak, self._peak * 0.5 ** (seconds / _FORGETTING_SECONDS))
        before = self.gain
        if self._peak > _NOISE_PEAK:
            wanted = min(max(_LIFTED_PEAK / self._peak, 1.0), _MOST_GAIN)
            self.gain = min(wanted, self.gain * _RISE_A_SECOND**seconds)
        if before == self.gain == 1.0:
            return samples
        ramp = np.linspace(min(before, self.gain), self.gain, samples.size, dtype=np.float32)
        return np.asarray(np.clip(samples * ramp, -1.0, 1.0), np.float32)


class CallerAudio:
    """One call's way in: a carrier's chunks to float32 mono at 16 kHz."""

    def __init__(self, encoding: Encoding) -> None:
        self.order = ChunkOrder()
        self.filler = LossFiller(encoding.rate)
        self._decoder = StreamDecoder(encoding)
        self._gain = QuietCallerGain(encoding.rate)
        doubles = 2 * encoding.rate == CALLER_RATE
        self._resampler = Doubler() if doubles else StreamResampler(encoding.rate, CALLER_RATE)

    def push(self, heard: Heard) -> Audio:
        """What can be listened to now; may be empty."""
        parts = [
            self.filler.push(self._decoder.push(one.payload), one.at_ms) for one in self.order.push(heard)
        ]
        if not parts:
            return np.zeros(0, np.float32)
        samples = np.concatenate(parts) if len(parts) > 1 else parts[0]
        return self._resampler.push(self._gain.push(samples))
