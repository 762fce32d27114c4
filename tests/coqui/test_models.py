"""Coqui models: streaming, speakers, and what is refused."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import numpy as np
import pytest
from TTS.utils.manage import ModelManager

from tts import coqui
from tts.coqui import CoquiVoice
from tts.coqui_models import CoquiError, VitsModel, XttsModel
from tts.load import load_voice
from tts.pauses import SENTENCE as SENTENCE_GAP
from tts.voice import Samples, Voice

SENTENCE = "We are open from nine to five."


def audio_of(voice: Voice, text: str = SENTENCE) -> Samples:
    return np.concatenate([chunk.samples for chunk in voice.synthesise(text, cancelled=lambda: False)])


def test_vits_in_windows_equals_the_whole_decode(vits: CoquiVoice) -> None:
    model = vits.model
    assert isinstance(model, VitsModel)
    windows = list(model.say(SENTENCE))
    assert len(windows) > 2
    assert len(windows[0]) < len(windows[1])
    np.testing.assert_allclose(np.concatenate(windows), model.whole(SENTENCE), atol=1e-5)


def test_xtts_gives_its_audio_before_it_has_sampled_all_of_it(xtts: CoquiVoice) -> None:
    model = xtts.model
    assert isinstance(model, XttsModel)
    chunks = [len(chunk) for chunk in model.say(SENTENCE)]
    assert len(chunks) > 2
    assert chunks[0] < sum(chunks) / 2


def test_xtts_that_does_not_come_to_an_end_is_cut(
    xtts: CoquiVoice, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(coqui, "LONGEST_SECONDS", 0.1)
    whole = sum(map(len, xtts.model.say("Go.")))
    with caplog.at_level(logging.WARNING):
        said = len(audio_of(xtts, "Go.")) - SENTENCE_GAP * xtts.sample_rate
    assert said < 0.6 * xtts.sample_rate < whole
    assert "does not come to the end of 3 characters" in caplog.text


def test_a_recording_makes_the_voice(folders: dict[str, Path], xtts: CoquiVoice, tmp_path: Path) -> None:
    other = tmp_path / "other.wav"
    shutil.copy(folders["recording"], other)
    same = load_voice(f"coqui:{folders['xtts']}?speaker={other}")
    np.testing.assert_array_equal(audio_of(same), audio_of(xtts))


@pytest.mark.parametrize("kind", ["vits-speakers", "xtts-speakers"])
def test_a_models_own_speakers_are_chosen_by_name(folders: dict[str, Path], kind: str) -> None:
    first, ann, bob = (
        audio_of(load_voice(f"coqui:{folders[kind]}{speaker}"))
        for speaker in ("", "?speaker=ann", "?speaker=bob")
    )
    np.testing.assert_array_equal(first, ann)
    assert len(bob) != len(ann) or np.abs(bob - ann).max() > 1e-3


def test_the_licence_of_xtts_is_said_at_the_start(
    folders: dict[str, Path], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        load_voice(f"coqui:{folders['xtts-speakers']}")
    assert "non-commercial use only" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="tts"):
        load_voice(f"coqui:{folders['vits']}")
    assert "non-commercial" not in caplog.text


def test_a_name_of_the_catalogue_is_fetched_by_the_package(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def download(_: ModelManager, name: str) -> tuple[Path, Path, dict[str, str]]:
        asked.append(name)
        return folders["vits"] / "model.pth", folders["vits"] / "config.json", {}

    monkeypatch.setattr(ModelManager, "download_model", download)
    assert load_voice("coqui:tts_models/en/ljspeech/vits").name == "coqui:vits"
    assert asked == ["tts_models/en/ljspeech/vits"]


def test_weights_under_a_licence_are_not_fetched_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COQUI_TOS_AGREED", raising=False)
    with pytest.raises(CoquiError, match="COQUI_TOS_AGREED=1"):
        load_voice("coqui:tts_models/multilingual/multi-dataset/xtts_v2")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("coqui:tts_models/en/nobody/vits", "no model tts_models/en/nobody/vits"),
        ("coqui:{xtts}", "name a recording"),
        ("coqui:{xtts}?speaker=nobody.wav", "cannot read the speaker's recording nobody.wav"),
        ("coqui:{xtts}?speaker={xtts}/config.json", "cannot read the speaker's recording"),
        ("coqui:{xtts-speakers}?speaker=cid", "its speakers are: ann, bob"),
        ("coqui:{vits-speakers}?speaker=cid", "it has: ann, bob"),
        ("coqui:{vits}?speaker=ann", "it has: one, unnamed"),
        ("coqui:{vits}?speed=2", "unknown option speed"),
    ],
)
def test_what_is_not_there_is_named(folders: dict[str, Path], spec: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_voice(spec.format_map(folders))


def test_a_language_that_the_model_does_not_speak_is_refused(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "xtts"
    shutil.copytree(folders["xtts-speakers"], folder)
    config = json.loads((folder / "config.json").read_text()) | {"languages": ["en", "it"]}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(CoquiError, match="XTTS speaks en, it, not es"):
        load_voice(f"coqui:{folder}", language="es")


def test_xtts_speaks_other_languages(folders: dict[str, Path]) -> None:
    voice = load_voice(f"coqui:{folders['xtts-speakers']}", language="es")
    assert len(audio_of(voice, "Cuesta 3 euros.")) > voice.sample_rate / 2


def test_words_in_other_scripts_are_left_out_and_counted(
    vits: CoquiVoice, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="tts"):
        assert list(vits.synthesise("Привет, 你好!", cancelled=lambda: False)) == []
        np.testing.assert_array_equal(audio_of(vits, "Hello 你好 you."), audio_of(vits, "Hello you."))
    assert "coqui:vits has no sounds for 2 words" in caplog.text
    assert "Привет" not in caplog.text


def test_the_library_does_not_log_what_is_said(vits: CoquiVoice, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert audio_of(vits, "My name is Łukasz {Novak}.").size
    assert "name" not in caplog.text


def test_weights_that_do_not_fit_are_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(CoquiError, match=r"config\.json and model\.pth or"):
        load_voice(f"coqui:{tmp_path}")
    shutil.copy(folders["vits"] / "config.json", tmp_path)
    shutil.copy(folders["xtts"] / "model.pth", tmp_path)
    with pytest.raises(CoquiError, match=r"cannot load .*model\.pth"):
        load_voice(f"coqui:{tmp_path}")
    config = json.loads((tmp_path / "config.json").read_text()) | {"model": "glow_tts"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(CoquiError, match="XTTS and VITS"):
        load_voice(f"coqui:{tmp_path}")
