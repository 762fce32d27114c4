"""Sample formats and stateful resampling."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.audio import StreamResampler, float_to_pcm16, mix_to_mono, pcm16_to_float


def tone(rate: int, hertz: float, seconds: float = 1.0) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(int(rate * seconds)) / rate)).astype(np.float32)


def run(resampler: StreamResampler, audio: np.ndarray, sizes: list[int]) -> np.ndarray:
    pieces, start, turn = [], 0, 0
    while start < len(audio):
        size = sizes[turn % len(sizes)]
        pieces.append(resampler.push(audio[start : start + size]))
        start, turn = start + size, turn + 1
    return np.concatenate([*pieces, resampler.flush()])


@pytest.mark.parametrize(
    ("rate_in", "rate_out"), [(24000, 16000), (22050, 24000), (8000, 16000), (48000, 16000)]
)
def test_a_stream_keeps_its_length_and_its_tone(rate_in: int, rate_out: int) -> None:
    out = run(StreamResampler(rate_in, rate_out), tone(rate_in, 440.0), [rate_in // 50])
    assert abs(len(out) - rate_out) <= 2
    middle = out[rate_out // 4 : -rate_out // 4]
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle))))
    assert spectrum.argmax() * rate_out / len(middle) == pytest.approx(440.0, abs=2.0)
    assert np.sqrt(np.mean(middle**2)) == pytest.approx(0.5 / np.sqrt(2), rel=1e-3)


@pytest.mark.parametrize(("rate_in", "rate_out"), [(24000, 16000), (22050, 24000), (8000, 16000)])
def test_the_sizes_of_the_pieces_do_not_matter(rate_in: int, rate_out: int) -> None:
    audio = np.random.default_rng(1).uniform(-0.5, 0.5, rate_in).astype(np.float32)
    whole = run(StreamResampler(rate_in, rate_out), audio, [len(audio)])
    pieces = run(StreamResampler(rate_in, rate_out), audio, [1, 7, 480, 3000])
    np.testing.assert_allclose(pieces, whole, atol=1e-5)


@pytest.mark.parametrize(("rate_in", "at_most_ms"), [(24000, 12), (16000, 0), (8000, 32)])
def test_little_is_held_back_from_the_recogniser(rate_in: int, at_most_ms: int) -> None:
    resampler = StreamResampler(rate_in, 16000)
    pushed = got = 0
    for _ in range(100):
        got += len(resampler.push(np.zeros(rate_in // 25, dtype=np.float32)))
        pushed += 640
        assert pushed - got <= at_most_ms * 16


def test_equal_rates_pass_through_and_a_flush_begins_anew() -> None:
    same = StreamResampler(16000, 16000)
    audio = tone(16000, 300.0)
    assert same.push(audio) is audio
    assert len(same.flush()) == 0
    resampler = StreamResampler(24000, 16000)
    first = run(resampler, tone(24000, 300.0), [960])
    second = run(resampler, tone(24000, 300.0), [960])
    np.testing.assert_array_equal(first, second)


def test_a_rate_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        StreamResampler(0, 16000)


def test_pcm16_survives_both_ways_and_clips_rather_than_wraps() -> None:
    values = np.array([-32768, -1, 0, 1, 32767], dtype="<i2")
    assert float_to_pcm16(pcm16_to_float(values.tobytes())) == values.tobytes()
    loud = np.frombuffer(float_to_pcm16(np.array([1.5, -1.5], dtype=np.float32)), dtype="<i2")
    assert loud.tolist() == [32767, -32768]
    with pytest.raises(ValueError, match="3 bytes"):
        pcm16_to_float(b"\0\0\0")


def test_channels_are_averaged() -> None:
    stereo = np.array([[0.5, -0.5], [1.0, 0.0]], dtype=np.float32)
    np.testing.assert_array_equal(mix_to_mono(stereo), np.array([0.0, 0.5], dtype=np.float32))
    np.testing.assert_array_equal(mix_to_mono(stereo[:, 0]), stereo[:, 0])
