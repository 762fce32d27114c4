"""What the service says when it cannot start, and which agents it takes calls for."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from pipeline.config import load
from pipeline.loading.language import explain
from pipeline.service import CannotStart, Service, _load_agents, _load_voices
from tts.hibari import HibariVoice


def test_an_unknown_agent_is_said_before_anything_is_loaded(tmp_path: Path) -> None:
    settings = load({"agent": "nobody", "latency_log": tmp_path / "latency.db"})
    with pytest.raises(CannotStart, match="no agent 'nobody'; there are: receptionist, support"):
        asyncio.run(Service.start(settings))


def test_a_broken_agent_is_left_out_and_the_others_serve(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "mine.toml").write_text('persona = "Be kind."')
    (tmp_path / "broken.toml").write_text('persona = "never closed')
    with caplog.at_level(logging.WARNING):
        agents = _load_agents(load({"agent": "mine", "agents_dir": tmp_path}))
    assert next(iter(agents)) == "mine"
    assert set(agents) == {"mine", "receptionist", "support"}
    assert "broken.toml" in caplog.text


def test_a_servers_model_cannot_be_explained() -> None:
    with pytest.raises(ValueError, match="choose an embedded one"):
        explain(load({"llm": "http://127.0.0.1:9/v1"}), "Hello")


def test_a_prompt_in_another_encoding_is_told_before_a_model_is_loaded(tmp_path: Path) -> None:
    argument = "café".encode("latin-1").decode("utf-8", "surrogateescape")  # as sys.argv has it
    with pytest.raises(ValueError, match="not in UTF-8"):
        explain(load({"llm": str(tmp_path)}), argument)


def test_an_agents_fixed_phrases_are_ready_before_the_first_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.toml").write_text('persona = "Be kind."\ngreeting = "Good day."\nhold_phrase = ""')
    settings = load({"agent": "mine", "agents_dir": tmp_path})
    agents = {"mine": _load_agents(settings)["mine"]}
    (voice,) = _load_voices(settings, agents).values()
    monkeypatch.setattr(HibariVoice, "synthesise", _refuse, raising=False)
    for phrase in ("Good day.", agents["mine"].silence.text, agents["mine"].apology):
        assert len(list(voice.synthesise(phrase, cancelled=lambda: False))) > 1
    with pytest.raises(AssertionError, match="not prepared"):
        list(voice.synthesise("Something else.", cancelled=lambda: False))


def test_an_agents_pronunciations_reach_its_voice(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('persona = "Be kind."\n[voice]\npronunciations = { Nguyen = "Win" }')
    settings = load({"agent": "mine", "agents_dir": tmp_path})
    voices = _load_voices(settings, _load_agents(settings))
    mine, other = (
        list(voices[name].synthesise("Ask Nguyen.", cancelled=lambda: False))
        for name in ("mine", "receptionist")
    )
    spelled = list(HibariVoice().synthesise("Ask Win.", cancelled=lambda: False))
    assert [chunk.samples.tolist() for chunk in mine] == [chunk.samples.tolist() for chunk in spelled]
    assert sum(len(chunk.samples) for chunk in other) != sum(len(chunk.samples) for chunk in mine)


def _refuse(*_: object, **__: object) -> None:
    raise AssertionError("not prepared")
