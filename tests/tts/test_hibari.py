"""The embedded voice, streamed: its windows are the whole sentence."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hibari import Hibari, dsp, voices

from tts.hibari import HibariVoice
from tts.hibari_frames import FrameDecoder
from tts.hibari_network import FRAMES_PER_DURATION, HibariNetwork
from tts.hibari_phonemes import MOST_PHONEMES, HibariPhonemes

SENTENCE = "Our address is forty two Station Road, and parking is free after six."


class FrameNoise:
    """The generator that the voice uses, in the layout that the package's own synthesis draws from it."""

    def standard_normal(self, shape: tuple[int, int], dtype: type) -> npt.NDArray[np.float32]:
        bins, values = shape
        drawn = np.random.default_rng(0).standard_normal((values // 2, 2 * bins), dtype=np.float32)
        return np.ascontiguousarray(drawn.view(np.complex64).T).view(np.float32)


@pytest.fixture(scope="module")
def network() -> HibariNetwork:
    return HibariNetwork(Path(voices.voice_path("heart")).read_bytes())


@pytest.fixture(scope="module")
def phonemes() -> HibariPhonemes:
    return HibariPhonemes(british=False)


@pytest.fixture(scope="module")
def spectra(phonemes: HibariPhonemes) -> tuple[list[npt.NDArray[np.float32]], npt.NDArray[np.float32]]:
    """The five spectra and the pitch of one sentence, from the network as published."""
    (segment,) = phonemes.segments(SENTENCE)
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


@pytest.mark.parametrize("size", [1, 13, 64])
def test_windows_are_the_whole_sentence_to_the_bit(
    network: HibariNetwork, phonemes: HibariPhonemes, size: int
) -> None:
    (segment,) = phonemes.segments(SENTENCE)
    encoded = network.encode(segment.ids)
    total = len(encoded.pitch)
    assert encoded.durations.sum() * FRAMES_PER_DURATION == total == encoded.frames.shape[1]
    windows = [(begin, min(begin + size, total)) for begin in range(0, total, size)]
    streamed = np.concatenate(list(network.stream(encoded, windows)))
    np.testing.assert_array_equal(streamed, network.whole(encoded))
    np.testing.assert_array_equal(np.concatenate(list(network.say(segment.ids).windows)), streamed)


def test_the_cut_network_says_what_the_published_one_says(
    network: HibariNetwork,
    phonemes: HibariPhonemes,
    spectra: tuple[list[npt.NDArray[np.float32]], npt.NDArray[np.float32]],
) -> None:
    """Up to rounding: 8-bit activations differ a little when the runtime fuses their layers."""
    (segment,) = phonemes.segments(SENTENCE)
    encoded = network.encode(segment.ids)
    parts, pitch = spectra
    np.testing.assert_allclose(encoded.pitch, pitch, atol=5)
    for ours, theirs in zip(network.spectra(encoded, 0, len(pitch)), parts, strict=True):
        assert np.abs(ours[0] - theirs).mean() < 0.1


def test_phonemes_are_those_of_the_package(phonemes: HibariPhonemes) -> None:
    published = Hibari(threads=1)
    segments = phonemes.segments(SENTENCE)
    assert [segment.ids for segment in segments] == [
        published.ids(phonemes) for phonemes in published.phonemize(SENTENCE)
    ]


def test_sentences_become_segments_and_long_ones_are_split_between_clauses(phonemes: HibariPhonemes) -> None:
    assert len(phonemes.segments("Hello! My name is Ann. How can I help?")) == 3
    long = phonemes.segments("we walked along the river, " * 60)
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


def test_another_voice_is_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bundled voice's bytes stand in for another's, served from a folder."""
    published = Path(voices.voice_path("heart")).read_bytes()
    (tmp_path / "other.onnx").write_bytes(published)
    entry = {"file": "other.onnx", "sha256": hashlib.sha256(published).hexdigest(), "british": False}
    monkeypatch.setitem(voices.VOICES, "other", entry)
    monkeypatch.setattr(voices, "BASE_URL", tmp_path.as_uri() + "/")
    cache = tmp_path / "cache"
    assert HibariVoice("other", cache=cache).name == "hibari:other"
    assert (cache / "other.onnx").read_bytes() == published
    (tmp_path / "other.onnx").unlink()
    HibariVoice("other", cache=cache)
    (cache / "other.onnx").unlink()
    with pytest.raises(RuntimeError, match="could not download"):
        HibariVoice("other", cache=cache)


def test_an_unknown_voice_is_named_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="no voice 'nobody'; it has heart"):
        HibariVoice("nobody")
