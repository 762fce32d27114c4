"""G.711 mu-law and A-law by table (ITU-T G.711, 1988): 16-bit PCM to eight bits a sample and back.

A decoder has 256 entries, an encoder one for every 16-bit sample. Sixteen-bit samples are cut to the
standard's fourteen bits (mu-law) and thirteen (A-law) with an arithmetic shift, as `audioop` did.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MULAW_SILENCE = 0xFF
ALAW_SILENCE = 0xD5

_BIAS = 33
"""Added to a fourteen-bit magnitude so that the eight mu-law segments begin at powers of two."""

_LOUDEST = 8158
"""The largest fourteen-bit magnitude in the last mu-law segment, the bias not counted."""


def _mulaw_decoder() -> NDArray[np.int16]:
    code = ~np.arange(256, dtype=np.int32) & 0xFF
    segment, step = (code >> 4) & 7, code & 15
    magnitude = ((((step << 1) + _BIAS) << segment) - _BIAS) << 2
    return np.where(code & 0x80, -magnitude, magnitude).astype(np.int16)


def _mulaw_encoder() -> NDArray[np.uint8]:
    sample = np.arange(-32768, 32768, dtype=np.int32) >> 2
    magnitude = np.minimum(np.abs(sample), _LOUDEST) + _BIAS
    segment = _bit_length(magnitude) - 6
    code = (segment << 4) | ((magnitude >> (segment + 1)) & 15)
    return _by_unsigned(code ^ np.where(sample < 0, 0x7F, 0xFF))


def _alaw_decoder() -> NDArray[np.int16]:
    code = np.arange(256, dtype=np.int32) ^ 0x55
    segment, step = (code >> 4) & 7, code & 15
    linear = (step << 4) + 8
    curved = ((step << 4) + 0x108) << np.maximum(segment - 1, 0)
    magnitude = np.where(segment == 0, linear, curved)
    return np.where(code & 0x80, magnitude, -magnitude).astype(np.int16)


def _alaw_encoder() -> NDArray[np.uint8]:
    sample = np.arange(-32768, 32768, dtype=np.int32) >> 3
    magnitude = np.where(sample < 0, -sample - 1, sample)
    segment = np.maximum(_bit_length(magnitude) - 5, 0)
    code = (segment << 4) | ((magnitude >> np.maximum(segment, 1)) & 15)
    return _by_unsigned(code ^ np.where(sample < 0, 0x55, 0xD5))


def _bit_length(values: NDArray[np.int32]) -> NDArray[np.int32]:
    return np.ceil(np.log2(values + 1)).astype(np.int32)


def _by_unsigned(codes: NDArray[np.int32]) -> NDArray[np.uint8]:
    """Codes of -32768..32767, reordered so that a sample's bits, read as unsigned, are its index."""
    return np.roll(codes.astype(np.uint8), 32768)


_MULAW_DECODER, _MULAW_ENCODER = _mulaw_decoder(), _mulaw_encoder()
_ALAW_DECODER, _ALAW_ENCODER = _alaw_decoder(), _alaw_encoder()


def mulaw_to_pcm(codes: bytes) -> NDArray[np.int16]:
    """Samples of a mu-law payload, up to +-32124."""
    return _MULAW_DECODER[np.frombuffer(codes, np.uint8)]


def pcm_to_mulaw(samples: NDArray[np.int16]) -> bytes:
    return _MULAW_ENCODER[samples.view(np.uint16)].tobytes()


def alaw_to_pcm(codes: bytes) -> NDArray[np.int16]:
    """Samples of an A-law payload, up to +-32256."""
    return _ALAW_DECODER[np.frombuffer(codes, np.uint8)]


def pcm_to_alaw(samples: NDArray[np.int16]) -> bytes:
    return _ALAW_ENCODER[samples.view(np.uint16)].tobytes()
