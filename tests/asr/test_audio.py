"""Bad audio is defined before any stage sees it."""

from __future__ import annotations

import numpy as np
import pytest

from asr.audio import as_audio


def test_what_is_no_number_becomes_silence_and_what_is_too_loud_is_clipped() -> None:
    audio = as_audio(np.array([0.5, np.nan, np.inf, -np.inf, 3.0, -3.0], np.float32))
    assert audio.tolist() == [0.5, 0.0, 0.0, 0.0, 1.0, -1.0]


@pytest.mark.filterwarnings("error")
def test_doubles_beyond_float32_are_clipped_without_a_warning() -> None:
    assert as_audio(np.array([1e300, -1e300, 1e-320, np.nan])).tolist() == [1.0, -1.0, 0.0, 0.0]


def test_the_callers_array_is_left_alone() -> None:
    samples = np.array([2.0, np.nan], np.float32)
    as_audio(samples)
    assert samples[0] == 2.0
    assert np.isnan(samples[1])


def test_doubles_are_taken_and_nothing_is_allowed() -> None:
    assert as_audio(np.zeros(4)).dtype == np.float32
    assert len(as_audio(np.zeros(0, np.float32))) == 0


def test_integers_are_refused_with_advice() -> None:
    with pytest.raises(TypeError, match="divide 16-bit samples by 32768"):
        as_audio(np.zeros(4, np.int16))


def test_two_channels_are_refused() -> None:
    with pytest.raises(ValueError, match="mono"):
        as_audio(np.zeros((4, 2), np.float32))
