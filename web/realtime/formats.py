"""How audio is written on the realtime wire: 16-bit PCM at a rate of the client's choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipeline.audio import Audio, float_to_pcm16, pcm16_to_float
from web.realtime.client_events import AudioFormat, BadEvent

RATES = (8_000, 16_000, 24_000, 44_100, 48_000)


@dataclass(frozen=True, slots=True)
class WireFormat:
    """Mono samples on the wire. The protocol's own default is 16-bit PCM at 24 kHz."""

    rate: int = 24_000

    def decode(self, data: bytes) -> Audio:
        """Float32 mono at `rate`. Raises ValueError when a sample is cut in half."""
        return pcm16_to_float(data)

    def encode(self, samples: Audio) -> bytes:
        return float_to_pcm16(samples)

    def describe(self) -> dict[str, Any]:
        return {"type": "audio/pcm", "rate": self.rate}


def choose_format(wanted: AudioFormat, *, param: str, event_id: str | None) -> WireFormat:
    """The format a client asks for. Raises BadEvent that lists what there is."""
    if wanted.type != "audio/pcm":
        raise BadEvent(
            "unsupported_format",
            f"there is no audio format {wanted.type[:40]!r} here: use audio/pcm",
            param=f"{param}.type",
            event_id=event_id,
        )
    rate = 24_000 if wanted.rate is None else wanted.rate
    if rate not in RATES:
        raise BadEvent(
            "unsupported_rate",
            f"{rate} Hz is not supported: use one of {', '.join(map(str, RATES))}",
            param=f"{param}.rate",
            event_id=event_id,
        )
    return WireFormat(rate)
