"""The embedded voice, streamed: its windows are the whole sentence."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hibari import Hibari, dsp

from tts.hibari import FRAMES_PER_DURATION, QUANTISED, SCALE, SPECTRA, ZERO_POINT, HibariVoice
from tts.hibari_frames import FrameDecoder
from tts.hibari_phonemes import MOST_PHONEMES

SENTENCE = "Our address is forty two Station Road, and parking is free after six."


class FrameNoise:
    """The generator that the voice uses, in the layout that the package's own synthesis draws from it."""

    def standard_normal(self, shape: tuple[int, int], dtype: type) -> npt.NDArray[np.float32]:
        bins, values = shape
        drawn = np.random.default_rng(0).standard_normal((values // 2, 2 * bins), dtype=np.float32)
        return np.ascontiguousarray(drawn.view(np.complex64).T).view(np.float32)


@pytest.fixture(scope="module")
def spectra(hibari: HibariVoice) -> tuple[list[npt.NDArray[np.float32]], npt.NDArray[np.float32]]:
    """The five spectra and the pitch of one sentence, from the network as published."""
    (segment,) = hibari._phonemes.segments(SENTENCE)
    published = Hibari(threads=1)
    inputs = {"ids": np.asarray([segment.ids], np.int64), "speed": np.ones(1, np.float32)}
    *parts, pitch = (output[0] for output in published.sess.run(None, inputs))
    return parts, pitch


@pytest.mark.parametrize("size", [1, 8, 50, 1000])
def test_windows_of_frames_are_the_whole_waveform(
    spectra: tuple[list[npt.NDArray[np.float32]], npt.NDArray[np.float32]], size: int
) -> None:
    parts, pitch = spectra
    decoder = FrameDecoder(pitch, np.random.default_rng(0))
    windows = [
        decoder.decode(*(part[:, begin : begin + size] for part in parts))
        for begin in range(0, len(pitch), size)
    ]
    whole = dsp.synth(*(part.copy() for part in parts), pitch, FrameNoise())
    streamed = np.concatenate(windows)
    assert len(streamed) == len(whole)
    np.testing.assert_allclose(streamed, whole, atol=1e-7)


def test_the_last_layer_in_windows_equals_it_at_once(hibari: HibariVoice) -> None:
    (segment,) = hibari._phonemes.segments(SENTENCE)
    encoded = hibari._encode(segment)

    def run(begin: int, end: int) -> npt.NDArray[np.float32]:
        frames = {
            QUANTISED: encoded.frames[:, begin:end],
            SCALE: encoded.scale,
            ZERO_POINT: encoded.zero_point,
        }
        return np.concatenate(hibari._last_layer.run(SPECTRA, frames), axis=1)

    total = encoded.frames.shape[1]
    windows = [run(begin, min(begin + 13, total)) for begin in range(0, total, 13)]
    np.testing.assert_array_equal(np.concatenate(windows, axis=2), run(0, total))
    assert encoded.durations.sum() * FRAMES_PER_DURATION == total == len(encoded.pitch)


def test_the_cut_network_says_what_the_published_one_says(
    hibari: HibariVoice, spectra: tuple[list[npt.NDArray[np.float32]], npt.NDArray[np.float32]]
) -> None:
    (segment,) = hibari._phonemes.segments(SENTENCE)
    encoded = hibari._encode(segment)
    parts, pitch = spectra
    np.testing.assert_allclose(
        encoded.pitch, pitch, atol=5
    )  # Hz; 8-bit activations round differently when fused
    frames = {QUANTISED: encoded.frames, SCALE: encoded.scale, ZERO_POINT: encoded.zero_point}
    for ours, theirs in zip(hibari._last_layer.run(SPECTRA, frames), parts, strict=True):
        assert np.abs(ours[0] - theirs).mean() < 0.1


def test_phonemes_are_those_of_the_package(hibari: HibariVoice) -> None:
    published = Hibari(threads=1)
    segments = hibari._phonemes.segments(SENTENCE)
    assert [segment.ids for segment in segments] == [
        published.ids(phonemes) for phonemes in published.phonemize(SENTENCE)
    ]


def test_sentences_become_segments_and_long_ones_are_split_between_clauses(hibari: HibariVoice) -> None:
    assert len(hibari._phonemes.segments("Hello! My name is Ann. How can I help?")) == 3
    long = hibari._phonemes.segments("we walked along the river, " * 60)
    assert len(long) > 2
    assert all(len(segment.ids) <= MOST_PHONEMES + 2 for segment in long)
    assert [segment.ending for segment in long[:-1]] == [","] * (len(long) - 1)


def test_neighbouring_sentences_are_equally_loud(hibari: HibariVoice) -> None:
    levels = []
    for text in ["Yes.", "We are closed on public holidays.", "What is your date of birth?"]:
        chunks = hibari.synthesise(text, cancelled=lambda: False)
        audio = np.concatenate([chunk.samples for chunk in chunks])
        levels.append(20 * np.log10(np.sqrt(np.mean(audio[np.abs(audio) > 0.03] ** 2))))
    assert max(levels) - min(levels) < 4


def test_pronunciations_replace_words_before_they_are_said() -> None:
    plain, renamed = HibariVoice(), HibariVoice(pronunciations={"Siobhan": "Shivawn"})
    text = "Ask for Siobhan."
    said = [
        np.concatenate([c.samples for c in v.synthesise(text, cancelled=lambda: False)])
        for v in (plain, renamed)
    ]
    wanted = np.concatenate(
        [c.samples for c in plain.synthesise("Ask for Shivawn.", cancelled=lambda: False)]
    )
    np.testing.assert_array_equal(said[1], wanted)
    assert not np.array_equal(said[0], said[1])


def test_an_unknown_voice_is_named_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="no voice 'nobody'; it has heart"):
        HibariVoice("nobody")
