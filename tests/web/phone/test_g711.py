"""The codec's tables against ITU-T G.711 as others have it, bit for bit."""

from __future__ import annotations

import subprocess
import warnings
from types import ModuleType

import numpy as np
import pytest

from tests.machine import program
from web.phone import g711
from web.phone.encodings import ALAW, MULAW, Encoding

SAMPLES = np.arange(-32768, 32768).astype(np.int16)
CODES = bytes(range(256))


def _audioop() -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import audioop
    return audioop


def test_every_sample_and_code_as_in_audioop() -> None:
    audioop = _audioop()
    assert g711.pcm_to_mulaw(SAMPLES) == audioop.lin2ulaw(SAMPLES.tobytes(), 2)
    assert g711.pcm_to_alaw(SAMPLES) == audioop.lin2alaw(SAMPLES.tobytes(), 2)
    assert g711.mulaw_to_pcm(CODES).tobytes() == audioop.ulaw2lin(CODES, 2)
    assert g711.alaw_to_pcm(CODES).tobytes() == audioop.alaw2lin(CODES, 2)


@pytest.mark.parametrize(
    ("name", "encode", "decode"),
    [("u-law", g711.pcm_to_mulaw, g711.mulaw_to_pcm), ("a-law", g711.pcm_to_alaw, g711.alaw_to_pcm)],
)
def test_every_code_as_in_sox(name: str, encode: object, decode: object) -> None:
    def sox(data: bytes, given: list[str], wanted: list[str]) -> bytes:
        raw = ["-t", "raw", "-r", "8000", "-c", "1"]
        command = [program("sox"), "-D", *raw, *given, "-", *raw, *wanted, "-"]
        return subprocess.run(command, input=data, capture_output=True, check=True).stdout

    linear, coded = ["-e", "signed", "-b", "16"], ["-e", name]
    assert decode(CODES).tobytes() == sox(CODES, coded, linear)  # type: ignore[operator]
    values = decode(CODES)  # type: ignore[operator]
    assert encode(values) == sox(values.tobytes(), linear, coded)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("encode", "decode"), [(g711.pcm_to_mulaw, g711.mulaw_to_pcm), (g711.pcm_to_alaw, g711.alaw_to_pcm)]
)
def test_a_code_survives_the_way_there_and_back(encode: object, decode: object) -> None:
    values = decode(CODES)  # type: ignore[operator]
    again = decode(encode(values))  # type: ignore[operator]
    assert np.array_equal(values, again)


@pytest.mark.parametrize("encoding", [MULAW, ALAW, Encoding("l16", 16000)])
def test_silence_is_silent(encoding: Encoding) -> None:
    assert np.abs(encoding.decode(encoding.silence * 160)).max() < 0.001


def test_half_a_sample_is_dropped() -> None:
    assert Encoding("l16", 8000).decode(b"\x00\x40\x01").tolist() == [0.5]
