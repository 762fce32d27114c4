"""Long text in parts that a network which takes no more can say; a speaker's recording as models want it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from tts.coqui import parts_of
from tts.coqui_models import CoquiError, _recording


@pytest.mark.parametrize(
    ("spoken", "parts"),
    [
        ("Yes.", ["Yes."]),
        ("We open at nine. We close at five.", ["We open at nine.", "We close at five."]),
        ("No. No. We close at five.", ["No. No.", "We close at five."]),
        ("Well, first of all, good morning.", ["Well, first of all,", "good morning."]),
        ("one two three four five six", ["one two three four", "five six"]),
        ("abcdefghijklmnopqrstuvwxyz", ["abcdefghijklmnopqrst", "uvwxyz"]),
        ("... - !", []),
    ],
)
def test_parts_end_where_a_speaker_would_pause(spoken: str, parts: list[str]) -> None:
    assert list(parts_of(spoken, 20)) == parts


@given(st.text(st.sampled_from("ab cé.,!?-… "), max_size=200), st.integers(1, 40))
def test_nothing_sayable_is_lost_and_no_part_is_too_long(spoken: str, longest: int) -> None:
    parts = list(parts_of(spoken, longest))
    assert all(0 < len(part) <= longest for part in parts)
    kept = "".join(filter(str.isalnum, "".join(parts)))
    assert kept == "".join(filter(str.isalnum, spoken))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1.0, 32768.0])
@pytest.mark.parametrize("other", [-1.0, 0.0, 1.0, np.nan])
def test_a_speaker_is_heard_on_whichever_channel_and_in_whichever_scale(
    tmp_path: Path, scale: float, other: float
) -> None:
    tone = np.sin(2 * np.pi * 220 * np.arange(32_000) / 16_000)
    soundfile.write(tmp_path / "a.wav", scale * np.stack([tone, other * tone], axis=1), 16_000, "FLOAT")
    (tmp_path / "a.wav").rename(tmp_path / "a.raw")
    audio, rate = _recording(str(tmp_path / "a.raw"), {})
    assert (audio.shape, rate) == ((32_000,), 16_000)
    np.testing.assert_allclose(audio, tone, atol=1e-4)


@pytest.mark.parametrize("name", ["gone.wav", "notes.wav", "notes.raw", "."])
def test_what_is_no_speakers_recording_is_said(tmp_path: Path, name: str) -> None:
    for notes in ("notes.wav", "notes.raw"):
        (tmp_path / notes).write_text("not audio")
    with pytest.raises(CoquiError, match="cannot read the speaker's recording") as refused:
        _recording(str(tmp_path / name), {"Ana": None})
    assert "BytesIO" not in str(refused.value)
