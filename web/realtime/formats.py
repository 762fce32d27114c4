"""How audio is written on the realtime wire: 16-bit PCM at a rate of the client's choice, or G.711."""

from __future__ import annotations

from typing import Any

from web.phone.encodings import ALAW, MULAW, Encoding
from web.realtime.client_events import AudioFormat, BadEvent

RATES = (8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 88_200, 96_000, 176_400, 192_000)
"""Up to the fastest sound cards': some browsers give a microphone at its own rate only."""

DEFAULT = Encoding("l16", 24_000)
_G711 = {"audio/pcmu": MULAW, "audio/pcma": ALAW}
_FLAT = {"pcm16": DEFAULT, "g711_ulaw": MULAW, "g711_alaw": ALAW}
_NAMES = {"l16": "audio/pcm", "mulaw": "audio/pcmu", "alaw": "audio/pcma"}


def describe(encoding: Encoding) -> dict[str, Any]:
    """As the protocol writes it; G.711 has but one rate."""
    name = {"type": _NAMES[encoding.kind]}
    return name if encoding.kind != "l16" else {**name, "rate": encoding.rate}


def choose_format(wanted: AudioFormat, *, param: str, event_id: str | None) -> Encoding:
    """The format a client asks for. Raises BadEvent that lists what there is."""
    if (g711 := _G711.get(wanted.type)) is not None:
        return g711
    if wanted.type != "audio/pcm":
        raise BadEvent(
            "unsupported_format",
            f"there is no audio format {wanted.type[:40]!r} here: use {', '.join(_NAMES.values())}",
            param=f"{param}.type",
            event_id=event_id,
        )
    rate = DEFAULT.rate if wanted.rate is None else wanted.rate
    if rate not in RATES:
        raise BadEvent(
            "unsupported_rate",
            f"{rate} Hz is not supported: use one of {', '.join(map(str, RATES))}",
            param=f"{param}.rate",
            event_id=event_id,
        )
    return Encoding("l16", rate)


def choose_flat_format(wanted: str, *, param: str, event_id: str | None) -> Encoding:
    """The same by the beta protocol's names, which have no rates. Raises BadEvent."""
    if (named := _FLAT.get(wanted)) is None:
        raise BadEvent(
            "unsupported_format",
            f"there is no audio format {wanted[:40]!r} here: use {', '.join(_FLAT)}",
            param=param,
            event_id=event_id,
        )
    return named
