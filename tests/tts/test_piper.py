"""A real Piper voice, streamed: its windows are the whole sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests import models
from tests.tts import tiny_piper
from tts import espeak, piper_network
from tts.espeak import Espeak, EspeakError
from tts.load import load_voice
from tts.piper import PiperVoice
from tts.piper_network import PiperError, PiperNetwork
from tts.piper_phonemes import PiperPhonemes
from tts.windows import WINDOWS

SENTENCES = [
    "Hello!",
    "Yes, of course.",
    "I'm sorry, we have no appointments left on Monday.",
    "Please bring your passport, the letter and two photographs of yourself, if you have them.",
]


@pytest.fixture(scope="module")
def phonemes(piper: PiperVoice) -> PiperPhonemes:
    return piper.phonemes


@pytest.fixture(scope="module")
def network(piper: PiperVoice) -> PiperNetwork:
    return piper.network


@pytest.mark.parametrize("text", SENTENCES)
def test_streamed_audio_equals_the_whole_decode(
    phonemes: PiperPhonemes, network: PiperNetwork, text: str
) -> None:
    (segment,) = phonemes.segments(text)
    encoded = network.encode(segment.ids)
    streamed = np.concatenate(list(network.stream(encoded)))
    whole = network.whole(encoded)
    assert len(streamed) == len(whole) == encoded.frames * network.hop
    assert np.abs(whole).max() > 0.1
    np.testing.assert_allclose(streamed, whole, atol=1e-5)


def test_less_context_than_the_receptive_field_would_not_do(
    phonemes: PiperPhonemes, network: PiperNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    (segment,) = phonemes.segments(SENTENCES[2])
    encoded = network.encode(segment.ids)
    monkeypatch.setattr(network, "_context", 6)
    streamed = np.concatenate(list(network.stream(encoded)))
    assert np.abs(streamed - network.whole(encoded)).max() > 1e-4


def test_the_first_window_is_the_shortest(phonemes: PiperPhonemes, network: PiperNetwork) -> None:
    (segment,) = phonemes.segments(SENTENCES[3])
    sizes = [len(window) for window in network.stream(network.encode(segment.ids))]
    assert sizes[0] == WINDOWS[0] * network.hop
    assert sizes[:-1] == sorted(sizes[:-1])


def test_the_three_parts_say_what_the_uncut_network_says(
    phonemes: PiperPhonemes, network: PiperNetwork
) -> None:
    """With its noise turned off the voice's own file and ours must agree."""
    model = _model().read_bytes()
    (segment,) = phonemes.segments(SENTENCES[2])
    silent = PiperNetwork(model, sample_rate=22_050, scales=[0.0, 1.0, 0.0])
    uncut = piper_network.session(model, 1)
    inputs = {
        "input": np.asarray([segment.ids], np.int64),
        "input_lengths": np.asarray([len(segment.ids)], np.int64),
        "scales": np.asarray([0.0, 1.0, 0.0], np.float32),
    }
    theirs = uncut.run(None, inputs)[0].reshape(-1)
    np.testing.assert_allclose(silent.whole(silent.encode(segment.ids)), theirs, atol=1e-5)


def test_clauses_and_dotted_letters(phonemes: PiperPhonemes, network: PiperNetwork) -> None:
    two = phonemes.segments("Come at ten a.m. on Monday. Bring it.")
    assert [segment.ending for segment in two] == [".", "."]
    assert [len(segment.words) for segment in two] == [6, 2]
    assert phonemes.segments("At ten a.m.")[0].ending == "."
    assert phonemes.segments("- . -") == []


def test_words_that_are_joined_in_speech_share_their_phonemes_by_letters(
    phonemes: PiperPhonemes, network: PiperNetwork
) -> None:
    (segment,) = phonemes.segments("two of the best")
    places = [word.place for word in segment.words]
    assert places == [0, 4, 7, 11]
    edges = [(word.first, word.last) for word in segment.words]
    assert all(first < last for first, last in edges)
    assert edges == sorted(edges)


def test_loudness_is_brought_to_the_common_level(piper: PiperVoice) -> None:
    chunks = piper.synthesise(SENTENCES[2], cancelled=lambda: False)
    audio = np.concatenate([chunk.samples for chunk in chunks])
    level = np.sqrt(np.mean(audio[np.abs(audio) > 0.1 * np.abs(audio).max()] ** 2))
    assert 0.08 < level < 0.25


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(espeak, "PROGRAM", "espeak-ng-that-is-not-there")
    with pytest.raises(EspeakError, match="apt install"):
        Espeak("en-us")


def test_a_program_without_the_language_says_so(piper: PiperVoice) -> None:
    with pytest.raises(EspeakError, match="xx-none"):
        Espeak("xx-none")


def test_a_line_that_espeak_breaks_in_two_stays_one(piper: PiperVoice) -> None:
    lines = Espeak("en-us").phonemes(["one, two. Three", "four"])
    assert len(lines) == 2
    assert lines[1].startswith("f")
    assert len(lines[0].split()) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"phoneme_type": "text"}, "espeak-ng phonemes"),
        ({"audio": {}}, "lacks 'sample_rate'"),
    ],
)
def test_voices_of_another_kind_are_refused(
    piper: PiperVoice, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    config = json.loads(Path(f"{_model()}.json").read_text(encoding="utf-8")) | change
    (tmp_path / "voice.onnx").write_bytes(b"")
    (tmp_path / "voice.onnx.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(PiperError, match=message):
        PiperVoice(tmp_path)


def test_a_voice_with_several_speakers_has_each_of_them(piper: PiperVoice, tmp_path: Path) -> None:
    config = json.loads(Path(f"{_model()}.json").read_text(encoding="utf-8"))
    config |= {"num_speakers": 3, "speaker_id_map": {"ann": 0, "bob": 1, "cid": 2}}
    (tmp_path / "voice.onnx").write_bytes(tiny_piper.model(speakers=3))
    (tmp_path / "voice.onnx.json").write_text(json.dumps(config), encoding="utf-8")
    first, ann, bob, second = (
        load_voice(f"piper:{tmp_path}{speaker}")
        for speaker in ("", "?speaker=ann", "?speaker=bob", "?speaker=1")
    )
    assert isinstance(bob, PiperVoice)
    (segment,) = bob.phonemes.segments(SENTENCES[2])
    audio = [
        voice.network.whole(voice.network.encode(segment.ids))
        for voice in (first, ann, bob, second)  # type: ignore[attr-defined]
    ]
    np.testing.assert_array_equal(audio[0], audio[1])
    np.testing.assert_array_equal(audio[2], audio[3])
    assert np.abs(audio[1] - audio[2]).max() > 0.01
    windows = list(bob.network.stream(bob.network.encode(segment.ids)))
    assert len(windows) > 1
    np.testing.assert_allclose(np.concatenate(windows), audio[2], atol=1e-5)
    for nobody in ("dan", "3"):
        with pytest.raises(PiperError, match=f"no speaker '{nobody}'; of 3 there are: ann, bob, cid"):
            load_voice(f"piper:{tmp_path}?speaker={nobody}")
    with pytest.raises(PiperError, match="no speaker 'ann'; of 1 there are"):
        PiperVoice(_model(), speaker="ann")


def test_a_language_without_words_for_numbers_is_refused(piper: PiperVoice, tmp_path: Path) -> None:
    config = json.loads(Path(f"{_model()}.json").read_text(encoding="utf-8")) | {"espeak": {"voice": "it"}}
    (tmp_path / "voice.onnx").symlink_to(_model())
    (tmp_path / "voice.onnx.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ValueError, match="language 'it'"):
        PiperVoice(tmp_path)


def test_files_that_are_no_voice_are_refused(piper: PiperVoice, tmp_path: Path) -> None:
    with pytest.raises(PiperError, match="no Piper voice"):
        PiperVoice(tmp_path)
    model = tmp_path / "voice.onnx"
    model.write_bytes(b"not a network")
    with pytest.raises(PiperError, match="cannot read"):
        PiperVoice(model)
    shutil.copy(f"{_model()}.json", f"{model}.json")
    with pytest.raises(PiperError, match=r"voice\.onnx cannot be used: the file is no ONNX model"):
        PiperVoice(model)


def _model() -> Path:
    (model,) = models.path("piper-joe").glob("*.onnx")
    return model
