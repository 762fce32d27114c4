"""The agent's audio on its way out: brought to the carrier's rate, encoded, and cut into frames of 20 ms."""

from __future__ import annotations

from pipeline.audio import Audio, StreamResampler
from web.phone.encodings import Encoding


class AgentAudio:
    """One call's way out. Audio of one reply is one stream; `flush` or `drop` ends it."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._resampler: StreamResampler | None = None
        self._rest = b""

    def push(self, samples: Audio, rate: int) -> list[bytes]:
        """Whole frames that are ready; the rest waits for more."""
        if self._resampler is None or self._resampler.rate_in != rate:
            self._resampler = StreamResampler(rate, self._encoding.rate)
        return self._frames(self._resampler.push(samples))

    def flush(self) -> list[bytes]:
        """What is left of the reply, the last frame filled up with silence."""
        frames = self._frames(self._resampler.flush()) if self._resampler is not None else []
        if self._rest:
            missing = self._encoding.frame_bytes - len(self._rest)
            frames.append(self._rest + self._encoding.silence * missing)
        self.drop()
        return frames

    def drop(self) -> None:
        """Forget what is left: it is not to be heard."""
        self._resampler = None
        self._rest = b""

    def _frames(self, samples: Audio) -> list[bytes]:
        data = self._rest + self._encoding.encode(samples)
        size = self._encoding.frame_bytes
        whole = len(data) - len(data) % size
        self._rest = data[whole:]
        return [data[start : start + size] for start in range(0, whole, size)]
