"""Agents' files: the shipped ones load, wrong ones say what is wrong."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, get_args
from unittest.mock import Mock

import pytest

from fixtures.fakes import agent, question
from fixtures.virtual_time import run
from llm.language_model import LanguageModel, Sampling
from llm.sentences import SentencePolicy
from llm.verify import Verification
from pipeline.agent import (
    AgentError,
    Patience,
    SamplingChoice,
    SentenceChoice,
    SpeculationChoice,
    choose_agent,
    find_agents,
    load_agent,
)
from pipeline.config import load
from pipeline.loading import language
from pipeline.turns.policy import TurnPolicy
from tests.llm.toys import ToyTarget, byte_tokenizer, random_rows


def test_the_shipped_agents_load() -> None:
    assert set(find_agents()) >= {"receptionist", "support"}
    for name in find_agents():
        agent = choose_agent(name)
        assert agent.facts
        assert "\n- " in agent.system_prompt()


def test_variables_fill_the_prompt(tmp_path: Path) -> None:
    file = tmp_path / "greeter.toml"
    file.write_text('persona = "You talk to {caller_name}. {unknown}"\n')
    agent = load_agent(file)
    assert agent.name == "greeter"
    assert agent.system_prompt({"caller_name": "Ada"}) == "You talk to Ada. {unknown}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('persona = "x', "not valid TOML"),
        ('greeting = "hi"', "persona: Field required"),
        ('persona = "x"\ntemprature = 1', "temprature"),
        ('persona = "x"\n[sampling]\ntemperature = 9', "sampling.temperature"),
        ('persona = "x"\n[sampling]\nstop = ["END", ""]', "sampling.stop.1"),
        ('persona = "x"\n[sampling]\nfrequency_penalty = 3', "sampling.frequency_penalty"),
        ('persona = "x"\n[sampling]\npresence_penalty = -3', "sampling.presence_penalty"),
        ('persona = "x"\n[sampling]\nbad_words = [""]', "sampling.bad_words.0"),
        ('persona = "x"\n[sampling.logit_bias]\n-1 = 5', "sampling.logit_bias.-1"),
        ('persona = "x"\n[sampling.logit_bias]\nyes = 5', "sampling.logit_bias.yes"),
        ('persona = "x"\n[sampling.logit_bias]\n7 = 200', "sampling.logit_bias.7"),
        (
            'persona = "x"\n[sampling]\nmin_tokens = 50\nmax_tokens = 40',
            "min_tokens = 50 is above max_tokens = 40",
        ),
        ('persona = "x"\n[speculation]\nverification = "hopeful"', "speculation.verification"),
        ('persona = "x"\n[sentences]\nmax_chars = 4', "sentences.max_chars"),
        ('persona = "x"\n[sentences]\nfirst_min_words = 0', "sentences.first_min_words"),
        ('persona = "x"\n[interruptions]\nmode = "never"', "interruptions.mode"),
        (
            'persona = "x"\n[patience]\nmin_silence_ms = 900\nmax_silence_ms = 500',
            "patience: Value error, min_silence_ms = 900 is above max_silence_ms = 500: set both to fit",
        ),
        (
            'persona = "x"\n[patience]\nmin_silence_ms = 3000',
            "min_silence_ms = 3000 is above max_silence_ms = 2500",
        ),
        (
            'persona = "x"\n[patience]\nmax_silence_ms = 300',
            "min_silence_ms = 340 is above max_silence_ms = 300",
        ),
        (
            'persona = "x"\n[patience]\nsoft_end_ms = 2600',
            "soft_end_ms = 2600 is above max_silence_ms = 2500",
        ),
    ],
)
def test_a_wrong_file_says_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(text)
    with pytest.raises(AgentError, match=r"agent\.toml") as raised:
        load_agent(file)
    assert message in str(raised.value)


def test_patience_that_is_not_set_has_the_decisions_own_bounds() -> None:
    assert TurnPolicy.of(Patience()) == TurnPolicy()
    set_in_part = Patience(soft_end_ms=100, min_silence_ms=250)
    assert TurnPolicy.of(set_in_part) == TurnPolicy(soft_end_ms=100, min_silence_ms=250)


def test_what_cannot_be_read_is_an_agents_error(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(AgentError, match=r"cannot read the agent file .*folder\.toml"):
        load_agent(tmp_path / "folder.toml")


EVERYTHING = """
persona = "You count."
language = "de"
[silence]
after_seconds = 1000
[speculation]
verification = "rejection"
[sentences]
first_clause = true
first_min_chars = 6
first_min_words = 2
first_at_once = true
max_chars = 40
[sampling]
temperature = 0.9
top_k = 40
top_p = 0.95
min_p = 0.01
repetition_penalty = 1.2
frequency_penalty = 0.3
presence_penalty = -0.2
bad_words = ["x"]
min_tokens = 3
max_tokens = 30
stop = ["END"]
seed = 11
[sampling.logit_bias]
65 = 4.5
66 = -100
"""
SAMPLING = Sampling(0.9, 40, 0.95, 0.01, 1.2, 0.3, -0.2, {65: 4.5, 66: -100.0}, ("x",), 3, 30, ("END",), 11)
SENTENCES = SentencePolicy("de", True, 6, 2, True, 40)


def test_a_file_can_set_all_that_the_language_stage_takes() -> None:
    """Also what it will take one day: a new field fails here until an agent can set it."""
    assert {field.name for field in fields(Sampling)} == set(SamplingChoice.model_fields)
    assert {field.name for field in fields(SentencePolicy)} == {"language", *SentenceChoice.model_fields}
    assert get_args(SpeculationChoice.model_fields["verification"].annotation) == get_args(Verification)
    for values, plain in ((SAMPLING, Sampling()), (SENTENCES, SentencePolicy())):
        for field in fields(values):
            assert getattr(values, field.name) != getattr(plain, field.name), f"{field.name} is not tried"


class Listening(LanguageModel):
    """A real engine on a toy model that keeps what its calls were asked."""

    def open(self, **asked: Any) -> Any:
        self.asked = asked
        conversation = super().open(**asked)
        conversation.reply = Mock(side_effect=conversation.reply)  # type: ignore[method-assign]
        self.reply = conversation.reply
        return conversation


def test_what_a_file_sets_reaches_the_engine(tmp_path: Path) -> None:
    (tmp_path / "counter.toml").write_text(EVERYTHING)
    engine = Listening(ToyTarget(random_rows(258, seed=3, memory=1), 258), byte_tokenizer())
    scene = question(agent=load_agent(tmp_path / "counter.toml"), language=engine)
    run(scene.play())
    assert engine.asked == {"tenant": "counter", "sentences": SENTENCES, "verification": "rejection"}
    assert engine.reply.call_args.args[1] == SAMPLING
    assert scene.records[0].language["verification"] == "rejection"
    assert scene.records[0].language["completion_tokens"] >= SAMPLING.min_tokens


@pytest.mark.parametrize("rule", get_args(Verification))
def test_each_rule_checks_the_drafts_of_a_call(rule: Verification) -> None:
    """Temperature 0 and a draft of what the model says anyway: every rule keeps it."""
    engine = LanguageModel(ToyTarget(random_rows(258, seed=3, memory=1), 258), byte_tokenizer())
    scene = question(agent=agent(speculation=SpeculationChoice(verification=rule)), language=engine)
    run(scene.play())
    figures = scene.records[0].language
    assert figures["verification"].split()[0] == rule
    assert figures["spec_decode_num_accepted_tokens"] > 0


def test_a_reply_is_explained_by_the_agents_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "counter.toml").write_text(EVERYTHING)
    toy = LanguageModel(ToyTarget(random_rows(258, seed=3, memory=1), 258), byte_tokenizer())
    monkeypatch.setattr(language, "load_embedded", lambda settings: toy)
    explanation = language.explain(load({"agent": str(tmp_path / "counter.toml")}), "Hi", max_tokens=4)
    assert explanation.stats["verification"] == "rejection"


def test_an_unknown_agent_lists_the_known(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="receptionist, support"):
        choose_agent("nobody")
    with pytest.raises(AgentError, match="no agent file"):
        load_agent(tmp_path / "none.toml")
    with pytest.raises(AgentError, match="does not exist"):
        find_agents(tmp_path / "none")


def test_a_folders_agents_win(tmp_path: Path) -> None:
    (tmp_path / "support.toml").write_text('persona = "Mine."')
    assert choose_agent("support", tmp_path).persona == "Mine."
