"""The caller's audio on its way in, and the agent's on its way out."""

from __future__ import annotations

import numpy as np
import pytest

from web.phone.doubling import AHEAD, Doubler
from web.phone.encodings import MULAW, Encoding
from web.phone.hearing import CallerAudio, ChunkOrder, LossFiller, QuietCallerGain
from web.phone.speaking import AgentAudio
from web.phone.wire import Heard


def _tone(seconds: float, rate: int, level: float = 0.5, hertz: float = 440) -> np.ndarray:
    return (level * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


# ---- order


@pytest.mark.parametrize(
    ("came", "heard"),
    [
        ([1, 2, 3], [1, 2, 3]),
        ([1, 3, 2, 4], [1, 2, 3, 4]),
        ([7, 8, 9], [7, 8, 9]),
        ([1, 2, 2, 3], [1, 2, 3]),
        ([1, 3, 4, 5, 6, 7], [1, 3, 4, 5, 6, 7]),
        ([1, 3, 4, 5, 6, 2, 7], [1, 3, 4, 5, 6, 7]),
        ([1, 900, 901, 902, 903], [1, 900, 901, 902, 903]),
        ([898, 899, 900, 1, 2, 3], [898, 899, 900, 1, 2, 3]),
        ([900, 902, 1, 2, 4, 3], [900, 1, 2, 3, 4]),
        ([1, 9001, 9002, 9003, 9004, 2, 3], [1, 9001, 9002, 9003, 9004, 2, 3]),
    ],
)
def test_chunks_are_sorted(came: list[int], heard: list[int]) -> None:
    order = ChunkOrder()
    out = [one.chunk for number in came for one in order.push(Heard(b"", number))]
    assert out == heard


def test_a_late_chunk_is_counted() -> None:
    order = ChunkOrder()
    for number in (1, 2, 1):
        order.push(Heard(b"", number))
    assert order.late == 1


def test_chunks_without_numbers_pass() -> None:
    assert len(ChunkOrder().push(Heard(b"x"))) == 1


# ---- loss


def test_a_hole_in_the_carriers_clock_is_filled() -> None:
    filler = LossFiller(8000)
    frame = np.full(160, 0.5, np.float32)
    filler.push(frame, 0)
    filled = filler.push(frame, 100)  # four frames did not come
    assert filled.size == 5 * 160
    assert [round(float(filled[n * 160]), 3) for n in range(5)] == [0.25, 0.125, 0.05, 0.0, 0.5]
    assert filler.filled == 4


def test_a_wavering_clock_is_no_loss() -> None:
    filler = LossFiller(8000)
    frame = np.zeros(160, np.float32)
    rng = np.random.default_rng(1)
    total = sum(filler.push(frame, round(n * 20 + rng.uniform(-9, 9))).size for n in range(500))
    assert filler.filled == 0
    assert total == 500 * 160


def test_a_jump_of_the_clock_is_a_new_beginning() -> None:
    filler = LossFiller(8000)
    frame = np.zeros(160, np.float32)
    for at in (0, 20, 60_000, 60_020, 0, 20):
        assert filler.push(frame, at).size == 160


# ---- gain


def test_a_quiet_caller_is_lifted_and_others_are_left_alone() -> None:
    def after(level: float) -> float:
        gain = QuietCallerGain(8000)
        speech = _tone(10, 8000, level)
        heard = np.concatenate([gain.push(speech[n : n + 160]) for n in range(0, speech.size, 160)])
        return float(np.abs(heard[-8000:]).max())

    assert after(0.02) == pytest.approx(0.16, abs=0.01)
    assert after(0.1) == pytest.approx(0.25, abs=0.01)
    assert after(0.5) == pytest.approx(0.5, abs=0.01)
    assert after(0.002) == pytest.approx(0.002, abs=0.0005), "line noise"


def test_a_caller_who_gets_louder_is_not_clipped_for_long() -> None:
    gain = QuietCallerGain(8000)
    for _ in range(500):
        gain.push(_tone(0.02, 8000, 0.02))
    gain.push(_tone(0.02, 8000, 0.8))
    assert np.abs(gain.push(_tone(0.02, 8000, 0.8))).max() == pytest.approx(0.8, abs=0.01)


# ---- together


def test_the_telephone_band_arrives_at_16_khz() -> None:
    audio = CallerAudio(MULAW)
    speech = MULAW.encode(_tone(1, 8000))
    heard = np.concatenate([audio.push(Heard(speech[n : n + 160])) for n in range(0, len(speech), 160)])
    assert heard.size == 16_000
    spectrum = np.abs(np.fft.rfft(heard[2000:10_000] * np.hanning(8000)))
    assert np.argmax(spectrum) * 16_000 / 8000 == pytest.approx(440, abs=2)


@pytest.mark.parametrize("size", [1, 37, 159, 161, 1000])
def test_odd_lengths_change_nothing(size: int) -> None:
    speech = MULAW.encode(_tone(0.5, 8000))
    whole = CallerAudio(MULAW).push(Heard(speech))
    audio = CallerAudio(MULAW)
    parts = [audio.push(Heard(speech[n : n + size])) for n in range(0, len(speech), size)]
    assert np.abs(np.concatenate(parts)[: whole.size] - whole[: sum(p.size for p in parts)]).max() < 1e-4


@pytest.mark.parametrize("encoding", [MULAW, Encoding("l16", 16_000), Encoding("l16", 24_000)])
def test_an_empty_message_is_nothing(encoding: Encoding) -> None:
    audio = CallerAudio(encoding)
    assert audio.push(Heard(b"")).size == 0
    assert audio.push(Heard(b"", 5, 100)).size == 0
    audio.push(Heard(encoding.silence * encoding.frame_bytes, 6, 100))
    assert audio.push(Heard(b"", 7, 120)).size == 0


# ---- doubling


@pytest.mark.parametrize("hertz", [100, 300, 1000, 2000, 3000, 3400])
def test_doubling_keeps_the_telephone_band(hertz: float) -> None:
    """To 60 dB, two milliseconds late."""
    doubler = Doubler()
    tone = _tone(1, 8000, hertz=hertz)
    doubled = np.concatenate([doubler.push(tone[n : n + 37]) for n in range(0, tone.size, 37)])
    wanted = _tone(1, 16_000, hertz=hertz)[: -2 * AHEAD]
    error = doubled[2 * AHEAD :][200:] - wanted[200:]
    assert np.sqrt(np.mean(error**2)) < 0.5e-3 * 0.5


def test_doubling_keeps_no_image_of_the_band() -> None:
    doubler = Doubler()
    doubled = doubler.push(_tone(1, 8000, hertz=3000))
    spectrum = np.abs(np.fft.rfft(doubled * np.hanning(doubled.size)))
    assert spectrum[4500:].max() < spectrum.max() * 1e-3


# ---- out


@pytest.mark.parametrize("encoding", [MULAW, Encoding("l16", 16000)])
@pytest.mark.parametrize("rate", [8000, 16000, 22050, 24000])
def test_a_reply_leaves_in_whole_frames(encoding: Encoding, rate: int) -> None:
    audio = AgentAudio(encoding)
    reply = _tone(1.011, rate)
    frames = [f for n in range(0, reply.size, 700) for f in audio.push(reply[n : n + 700], rate)]
    frames += audio.flush()
    assert {len(frame) for frame in frames} == {encoding.frame_bytes}
    assert len(frames) * 0.02 == pytest.approx(1.011, abs=0.02)
    assert audio.flush() == []


def test_what_is_dropped_is_not_heard_in_the_next_reply() -> None:
    audio = AgentAudio(MULAW)
    audio.push(_tone(0.05, 8000), 8000)
    audio.drop()
    assert audio.push(np.zeros(160, np.float32), 8000) == [MULAW.silence * 160]
