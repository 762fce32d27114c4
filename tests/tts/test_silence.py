"""Leading silence goes, the gap is what was asked for, words move with the audio."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tts.loudness import KNEE, LEVEL, amplify, gain_for
from tts.pauses import CLAUSE, NONE, PARAGRAPH, SENTENCE, gap_after
from tts.silence import DECAY_SECONDS, ONSET_SECONDS, Piece, join, trim
from tts.voice import Samples, VoiceChunk, WordTiming

RATE = 1000


def sound(*parts: tuple[float, int]) -> Samples:
    return np.concatenate([np.full(count, level, np.float32) for level, count in parts])


def chunks(audio: Samples, size: int, words: tuple[WordTiming, ...] = ()) -> Iterator[VoiceChunk]:
    for begin in range(0, len(audio), size):
        end = begin + size
        yield VoiceChunk(audio[begin:end], tuple(word for word in words if begin <= word.start * RATE < end))


@pytest.mark.parametrize("size", [1, 7, 100, 5000])
def test_silence_around_is_trimmed_and_silence_inside_is_kept(size: int) -> None:
    audio = sound((0.0, 300), (0.5, 100), (0.0, 200), (0.5, 100), (0.0, 400))
    out = np.concatenate([chunk.samples for chunk in trim(chunks(audio, size), RATE, 0.15)])
    onset = round(ONSET_SECONDS * RATE)
    np.testing.assert_array_equal(out, audio[300 - onset : 700 + 150])


def test_a_unit_that_ends_abruptly_gets_its_gap() -> None:
    out = list(trim(chunks(sound((0.5, 50)), 10), RATE, 0.2))
    assert sum(len(chunk.samples) for chunk in out) == 250


def test_silence_alone_is_nothing() -> None:
    assert list(trim(chunks(sound((0.001, 900)), 100), RATE, 0.2)) == []


def test_words_move_with_the_audio_and_are_never_cut() -> None:
    words = (WordTiming(0, 2, 0.28, 0.38), WordTiming(3, 6, 0.6, 0.9))
    audio = sound((0.0, 300), (0.5, 100), (0.0, 200), (0.5, 100), (0.0, 400))
    out = list(trim(chunks(audio, 50, words), RATE, 0.02))
    timed = [word for chunk in out for word in chunk.words]
    assert [(word.start_char, word.end_char) for word in timed] == [(0, 2), (3, 6)]
    assert timed[0].start == 0.0
    assert timed[1].start == pytest.approx(0.6 - 0.292)
    assert sum(len(chunk.samples) for chunk in out) == pytest.approx(timed[1].end * RATE)


@given(
    parts=st.lists(st.tuples(st.sampled_from([0.0, 0.5]), st.integers(1, 60)), min_size=1, max_size=8),
    size=st.integers(1, 90),
)
def test_the_size_of_chunks_never_shows(parts: list[tuple[float, int]], size: int) -> None:
    audio = sound(*parts)
    whole = [chunk.samples for chunk in trim(chunks(audio, len(audio)), RATE, 0.05)]
    cut = [chunk.samples for chunk in trim(chunks(audio, size), RATE, 0.05)]
    np.testing.assert_array_equal(np.concatenate([*cut, []]), np.concatenate([*whole, []]))


def test_pieces_follow_each_other_with_their_gaps() -> None:
    word = (WordTiming(0, 1, 0.0, 0.1),)
    pieces = [Piece(chunks(sound((0.5, 100), (0.0, 300)), 40, word), gap) for gap in (0.2, 0.05)]
    out = list(join(pieces, RATE, lambda: False))
    assert sum(len(chunk.samples) for chunk in out) == 300 + 150
    assert [word.start for chunk in out for word in chunk.words] == [0.0, pytest.approx(0.3)]


def test_a_gap_is_at_least_the_decay() -> None:
    out = list(trim(chunks(sound((0.5, 50), (0.0, 90)), 10), RATE, 0.0))
    assert sum(len(chunk.samples) for chunk in out) == 50 + DECAY_SECONDS * RATE


@pytest.mark.parametrize(
    ("text", "gap"),
    [
        ("We open at nine.", SENTENCE),
        ("Really?! ", SENTENCE),
        ('He said "yes."', SENTENCE),
        ("**Bold.**", SENTENCE),
        ("Of course,", CLAUSE),
        ("Here it is: ", CLAUSE),
        ("One moment —", CLAUSE),
        ("cut between", NONE),
        ("- an item\n", SENTENCE),
        ("The end.\n\n", PARAGRAPH),
        ("The end.\n  \nNext", NONE),
        ("¿Qué?", SENTENCE),
        ("はい。", SENTENCE),
        ("", NONE),
    ],
)
def test_the_mark_decides_the_gap(text: str, gap: float) -> None:
    assert gap_after(text) == gap


def test_the_limiter_bends_what_is_loud_and_leaves_the_rest() -> None:
    audio = np.linspace(-2, 2, 401, dtype=np.float32)
    out = amplify(audio, 1.0)
    quiet = np.abs(audio) <= KNEE
    np.testing.assert_array_equal(out[quiet], audio[quiet])
    assert np.abs(out).max() <= 1.0
    assert (np.diff(out) >= 0).all()


def test_what_is_not_finite_becomes_silence() -> None:
    out = amplify(np.array([np.nan, np.inf, -np.inf, 0.1], np.float32), 1.0)
    np.testing.assert_array_equal(out, np.array([0, 0, 0, 0.1], np.float32))


def test_the_gain_brings_speech_to_the_common_level() -> None:
    speech = sound((0.0, 500), (0.05, 100), (-0.05, 100))
    assert gain_for(speech) * 0.05 == pytest.approx(LEVEL)
    assert gain_for(sound((0.0, 10))) == 1.0
