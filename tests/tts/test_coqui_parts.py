"""Long text in parts that a network which takes no more can say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tts.coqui import parts_of


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
