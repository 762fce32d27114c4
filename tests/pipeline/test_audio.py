"""Sample formats and stateful resampling."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.audio import StreamResampler, float_to_pcm16, in_full_scale, mix_to_mono, pcm16_to_float


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


@pytest.mark.filterwarnings("error")
def test_what_is_no_number_is_silence_on_the_wire() -> None:
    samples = np.array([np.nan, np.inf, -np.inf, 3e38, 0.5], np.float32)
    assert np.frombuffer(float_to_pcm16(samples), "<i2").tolist() == [0, 32767, -32768, 32767, 16384]


# ---- channels

RATE = 44_100


def voice(pitch: float, seed: int) -> np.ndarray:
    """Three seconds like speech: a pitch with formants, in syllables, with a breath of noise."""
    at = np.arange(3 * RATE) / RATE
    harmonics = [np.sin(2 * np.pi * pitch * n * at + n * seed) / n for n in range(1, 40)]
    syllables = np.clip(np.sin(2 * np.pi * (1.5 + 0.2 * seed) * at + seed), 0, None)
    noise = np.random.default_rng(seed).standard_normal(len(at))
    return np.asarray(syllables * (0.15 * sum(harmonics) + 0.01 * noise))


CALLER, OTHER = voice(110.0, 1), voice(190.0, 2)
SILENT = np.zeros_like(CALLER)
HISS = 0.01 * np.random.default_rng(3).standard_normal(len(CALLER))
HUM = 0.3 * np.sin(2 * np.pi * 50 * np.arange(len(CALLER)) / RATE)


def turned(samples: np.ndarray) -> np.ndarray:
    """Every frequency a quarter of its period later."""
    spectrum = np.fft.rfft(samples) * np.exp(-0.5j * np.pi)
    return np.asarray(np.fft.irfft(spectrum, len(samples)))


LATER, MUCH_LATER, TURNED = np.roll(CALLER, 22), np.roll(CALLER, 441), turned(CALLER)


@pytest.mark.parametrize(
    "channels",
    [
        pytest.param([CALLER, -CALLER], id="opposite phase"),
        pytest.param([-CALLER, CALLER, -CALLER, CALLER], id="four, two of them turned"),
        pytest.param([CALLER, -0.7 * CALLER], id="opposite and quieter"),
        pytest.param([CALLER, SILENT], id="right silent"),
        pytest.param([SILENT, CALLER], id="left silent"),
        pytest.param([SILENT, SILENT, SILENT, SILENT, CALLER, SILENT], id="the fifth of six"),
        pytest.param([CALLER, CALLER], id="alike"),
        pytest.param([CALLER], id="one"),
        pytest.param([CALLER, LATER], id="half a millisecond later"),
        pytest.param([CALLER, MUCH_LATER], id="ten milliseconds later"),
        pytest.param([CALLER, TURNED], id="a quarter later"),
        pytest.param([0.5 * OTHER, CALLER], id="another person, quieter"),
        pytest.param([HISS, CALLER], id="hiss"),
        pytest.param([HUM, CALLER], id="hum louder than speech"),
        pytest.param([0 * CALLER + 0.9, CALLER], id="a constant"),
        pytest.param([CALLER, 0.05 * CALLER], id="leaking over"),
    ],
)
def test_the_caller_is_heard_whole_whatever_the_channels(channels: list[np.ndarray]) -> None:
    heard = mix_to_mono(np.stack(channels, axis=1), RATE)
    assert heard.dtype == np.float32
    assert heard.ndim == 1
    assert min(np.abs(heard - one).max() for one in (CALLER, -CALLER, LATER, MUCH_LATER, TURNED)) < 1e-6


def test_channels_that_agree_are_averaged() -> None:
    noise = np.random.default_rng(4).standard_normal((len(CALLER), 2)) * 0.003
    heard = mix_to_mono(CALLER[:, None] + noise, RATE)
    assert np.std(heard - CALLER) < 0.8 * np.std(noise)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("frames", [0, 1, 2, 5])
def test_hardly_any_frames(frames: int) -> None:
    assert len(mix_to_mono(np.zeros((frames, 2), np.float32), 48_000)) == frames
    assert len(mix_to_mono(np.zeros(frames, np.float32), 48_000)) == frames


# ---- scale


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1.0, 2.0**15, 32767.0, 2.0**23, 2.0**31])
@pytest.mark.parametrize("level", [1.0, 0.1])
def test_integers_written_as_floats_have_their_own_full_scale(scale: float, level: float) -> None:
    samples = level * tone(16_000, 440.0).astype(np.float64)
    np.testing.assert_allclose(in_full_scale(samples * scale), samples, atol=1e-4)


@pytest.mark.filterwarnings("error")
def test_a_mix_that_is_too_loud_is_brought_back_to_full_scale() -> None:
    samples = 3 * tone(16_000, 440.0)
    np.testing.assert_allclose(in_full_scale(samples), samples / np.abs(samples).max(), atol=1e-4)


@pytest.mark.filterwarnings("error")
def test_what_is_no_number_is_silence_and_a_constant_is_none() -> None:
    samples = tone(16_000, 440.0) + np.float32(0.25)
    broken = samples.copy()
    broken[100:103] = np.nan, np.inf, -np.inf
    scaled = in_full_scale(broken)
    assert np.isfinite(scaled).all()
    np.testing.assert_allclose(scaled[200:], tone(16_000, 440.0)[200:], atol=1e-3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("samples", "says"),
    [
        (np.full(100, np.nan), "none of its samples is a number"),
        (np.full((100, 2), np.inf), "none of its samples is a number"),
        (np.sin(np.arange(100.0)) * 1e300, "no full scale is known"),
    ],
)
def test_a_scale_that_cannot_be_told(samples: np.ndarray, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        in_full_scale(samples)


@pytest.mark.filterwarnings("error")
def test_the_smallest_numbers_there_are() -> None:
    least = np.full((1000, 2), 5e-324) * np.sign(np.sin(np.arange(1000)))[:, None]
    assert np.abs(mix_to_mono(in_full_scale(least), 16_000)).max() < 1e-30
