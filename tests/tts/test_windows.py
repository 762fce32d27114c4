"""How far a network's frames reach is found by trying, and windows with that context are the whole."""

from __future__ import annotations

import numpy as np
import pytest

from tests.tts import tiny_piper
from tts.piper_network import PiperError, PiperNetwork
from tts.windows import WINDOWS, ramped, reach, with_context

IDS = [1, 5, 3, 9, 2, 7, 4, 8, 6, 11, 10, 12, 13, 14, 15, 0] * 3


def network(kernel: int, dilation: int) -> PiperNetwork:
    model = tiny_piper.model(kernel=kernel, dilation=dilation)
    return PiperNetwork(model, sample_rate=16_000, scales=[0.7, 1.0, 0.8])


@pytest.mark.parametrize("neighbours", [0, 3, 48, 100])
def test_the_reach_of_a_frame_is_found_exactly(neighbours: int) -> None:
    def respond(frames: np.ndarray) -> np.ndarray:
        padded = np.pad(frames, ((0, 0), (0, 0), (neighbours, neighbours)))
        return np.lib.stride_tricks.sliding_window_view(padded, 2 * neighbours + 1, axis=2).sum(axis=3)

    assert reach(respond, 4) == neighbours


def test_a_frame_that_reaches_everywhere_is_refused() -> None:
    with pytest.raises(ValueError, match="192 frames away"):
        reach(lambda frames: frames + frames.mean(), 4)


def test_ranges_cover_every_frame_once_and_grow() -> None:
    for frames in (0, 1, 16, 17, 60, 61, 1000):
        ranges = list(ramped(frames))
        assert [frame for begin, end in ranges for frame in range(begin, end)] == list(range(frames))
    assert [end - begin for begin, end in ranges[:4]] == list(WINDOWS)
    assert with_context(10, 20, 5, 22) == (5, 22)
    assert with_context(2, 20, 5, 22) == (0, 22)


@pytest.mark.parametrize(("kernel", "dilation", "context"), [(3, 1, 5), (11, 5, 11), (11, 25, 36)])
def test_a_decoder_of_any_receptive_field_is_streamed_exactly(
    kernel: int, dilation: int, context: int
) -> None:
    tiny = network(kernel, dilation)
    encoded = tiny.encode(IDS)
    windows = list(tiny.stream(encoded))
    whole = tiny.whole(encoded)
    assert len(windows) > 3
    assert len(whole) == encoded.frames * tiny_piper.HOP
    assert np.abs(whole).max() > 0.1
    np.testing.assert_allclose(np.concatenate(windows), whole, atol=1e-5)
    assert tiny._context == context


def test_less_context_than_that_would_not_do(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = network(11, 25)
    encoded = tiny.encode(IDS)
    monkeypatch.setattr(tiny, "_context", 14)
    assert np.abs(np.concatenate(list(tiny.stream(encoded))) - tiny.whole(encoded)).max() > 1e-3


def test_a_decoder_that_needs_the_whole_sentence_is_refused() -> None:
    with pytest.raises(PiperError, match="cannot be streamed"):
        network(1601, 1)
