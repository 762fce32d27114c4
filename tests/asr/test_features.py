"""The features are Whisper's, however the audio arrives."""

from __future__ import annotations

import numpy as np
from faster_whisper.feature_extractor import FeatureExtractor

from asr.features import HOP, LogMel, normalise
from fixtures.recordings import Recording


def test_whole_audio_gives_what_faster_whisper_gives(sentences: list[Recording]) -> None:
    audio = sentences[1].audio
    ours = normalise(LogMel(80).centred(audio))[0]
    assert np.abs(ours - FeatureExtractor()(audio, padding=0)).max() < 1e-5


def test_frames_do_not_depend_on_where_the_audio_is_cut(sentences: list[Recording]) -> None:
    audio, log_mel = sentences[1].audio, LogMel(80)
    whole = log_mel.frames(audio)
    rows, rest = [], np.zeros(0, np.float32)
    for piece in np.array_split(audio, 37):
        rest = np.concatenate([rest, piece])
        rows.append(log_mel.frames(rest))
        rest = rest[len(rows[-1]) * HOP :]
    assert np.abs(np.concatenate(rows) - whole).max() < 1e-4


def test_less_than_a_window_gives_no_frame() -> None:
    assert LogMel(80).frames(np.zeros(399, np.float32)).shape == (0, 80)
