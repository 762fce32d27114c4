"""Smart Turn on real speech: finished sentences score above the same sentences cut."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from asr.end_of_turn import SmartTurn
from fixtures.recordings import Recording
from fixtures.speech import RATE, silence

CUT = 4.24  # seconds into the longest sentence: "to consider how much there might be"


def test_a_sentence_sounds_more_finished_than_its_beginning(
    smart_turn: SmartTurn, sentences: list[Recording]
) -> None:
    longest = sentences[0].audio
    assert smart_turn.probability(np.concatenate([longest, silence(0.2)])) > 0.9
    assert smart_turn.probability(np.concatenate([longest[: round(CUT * RATE)], silence(0.2)])) < 0.1


def test_only_the_last_eight_seconds_count(smart_turn: SmartTurn, sentences: list[Recording]) -> None:
    tail = np.concatenate([silence(1.0), sentences[0].audio])[-8 * RATE :]
    longer = np.concatenate([sentences[2].audio, tail])
    assert smart_turn.probability(longer) == pytest.approx(smart_turn.probability(tail), abs=1e-6)


def test_no_audio_is_no_end(smart_turn: SmartTurn) -> None:
    assert smart_turn.probability(silence(0.0)) == 0.0
    assert smart_turn.probability(silence(3.0)) == 0.0


def test_a_missing_or_wrong_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="rejoinder models pull"):
        SmartTurn(tmp_path / "none.onnx")
