"""What the service says when it cannot start, and which agents it takes calls for."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from llm.language_model import LanguageModel, Message
from pipeline.agent import Agent, choose_agent
from pipeline.config import load
from pipeline.loading.language import explain
from pipeline.loading.prompts import read_prompt
from pipeline.service import CannotStart, Service, _load_agents, _load_voices
from pipeline.telemetry.latency_log import LatencyLog
from pipeline.workers import Workers
from tests.llm.toys import ToyTarget, byte_tokenizer, random_rows
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


def test_calls_read_only_their_own_words_from_the_first_on_and_after_a_restart(tmp_path: Path) -> None:
    """With the smallest model, in a real service: its agents' prompts are read once, whoever calls first."""
    steps: list[str] = []
    said = [Message("user", "When do you open on Saturday?")]
    read: dict[str, int] = {}

    async def start(agent: str) -> Service:
        settings = load({"agent": agent, "llm": "smollm2-135m", "latency_log": tmp_path / "latency.db"})
        return await Service.start(settings, steps.append)

    async def talk(service: Service, agents: Sequence[str]) -> None:
        for name in agents:
            system = Message("system", choose_agent(name).system_prompt())
            for tenant in ("one", "another"):
                session = service.stages.language.open(tenant=tenant)
                assert session.prefill([system], lambda: False) == 0
                read[name] = session.prefill([system, *said], lambda: False)
                session.close()

    async def run() -> None:
        service = await start("receptionist")
        await talk(service, ["receptionist"])  # at once: the others may still be read
        assert service._reading is not None
        await service._reading
        await talk(service, ["support"])
        await service.close()
        service = await start("support")
        await talk(service, ["support"])
        await service.close()

    asyncio.run(run())
    assert steps.count("Reading the agents' prompts") == 2
    assert all(0 < tokens < 16 for tokens in read.values())


class EndlessReader:
    """A language model whose prompts take until somebody wants it to stop."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.began = threading.Semaphore(0)
        self.stopped = threading.Semaphore(0)

    def read_prompt(self, system: str, cancelled: Callable[[], bool]) -> bool:
        self.asked.append(system)
        self.began.release()
        while not cancelled():
            os.sched_yield()
        self.stopped.release()
        return False


def test_agents_prompts_are_not_read_beside_a_call_nor_hold_up_the_end(tmp_path: Path) -> None:
    agents = {name: Agent(name=name, persona=name) for name in ("first", "second")}
    reader = EndlessReader()

    async def run() -> None:
        service = Service(
            load({}),
            agents,
            {},
            SimpleNamespace(workers=Workers({})),  # type: ignore[arg-type]
            LatencyLog(tmp_path / "latency.db"),
        )
        service._reading = asyncio.create_task(service._read_prompts(reader))  # type: ignore[arg-type]
        await asyncio.to_thread(reader.began.acquire)
        with service.running.counted(object()):  # type: ignore[arg-type]
            await asyncio.to_thread(reader.stopped.acquire)
            assert reader.asked == ["first"]
        await asyncio.to_thread(reader.began.acquire)
        assert reader.asked == ["first", "first"], "it goes on when the call is over"
        await service.close()
        assert service._reading.done()

    asyncio.run(run())


def test_a_prompt_that_does_not_fit_is_told_with_its_agents_name(caplog: pytest.LogCaptureFixture) -> None:
    small = ToyTarget(random_rows(258), 258, context=64)
    agent = Agent(name="wordy", persona="Be kind. " * 20)
    assert read_prompt(LanguageModel(small, byte_tokenizer()), agent, lambda: False)
    assert "agent wordy" in caplog.text
    assert "shorten the persona" in caplog.text


def _refuse(*_: object, **__: object) -> None:
    raise AssertionError("not prepared")
