"""How a carrier writes audio: G.711 or linear PCM, at a rate, in frames of 20 ms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipeline.audio import Audio, float_to_pcm16, pcm16_to_float
from web.phone import g711

FRAME_SECONDS = 0.02

Kind = Literal["mulaw", "alaw", "l16"]


@dataclass(frozen=True, slots=True)
class Encoding:
    """Mono samples on a carrier's wire. `l16`: 16-bit little-endian."""

    kind: Kind
    rate: int

    @property
    def sample_bytes(self) -> int:
        return 2 if self.kind == "l16" else 1

    @property
    def frame_bytes(self) -> int:
        """Bytes of 20 ms."""
        return round(self.rate * FRAME_SECONDS) * self.sample_bytes

    @property
    def silence(self) -> bytes:
        """The byte of which silence is made."""
        return {
            "mulaw": bytes([g711.MULAW_SILENCE]),
            "alaw": bytes([g711.ALAW_SILENCE]),
            "l16": b"\0",
        }[self.kind]

    def decode(self, payload: bytes) -> Audio:
        """Float32 mono at `rate`. Half a sample at the end is dropped."""
        if self.kind == "l16":
            return pcm16_to_float(payload[: len(payload) & ~1])
        decode = g711.mulaw_to_pcm if self.kind == "mulaw" else g711.alaw_to_pcm
        return decode(payload).astype(np.float32) / np.float32(32768)

    def encode(self, samples: Audio) -> bytes:
        """Float32 in [-1, 1] as the carrier's bytes; louder samples are clipped."""
        pcm = float_to_pcm16(samples)
        if self.kind == "l16":
            return pcm
        encode = g711.pcm_to_mulaw if self.kind == "mulaw" else g711.pcm_to_alaw
        return encode(np.frombuffer(pcm, np.int16))


MULAW = Encoding("mulaw", 8000)
ALAW = Encoding("alaw", 8000)


class StreamDecoder:
    """One direction's bytes to samples: a stream may be cut into messages anywhere, inside a sample too."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._rest = b""

    def push(self, payload: bytes) -> Audio:
        """Float32 mono at the encoding's rate; the first byte of a sample waits for its second."""
        data = self._rest + payload
        whole = len(data) - len(data) % self._encoding.sample_bytes
        self._rest = data[whole:]
        return self._encoding.decode(data[:whole])
