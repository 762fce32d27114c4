"""Agents' files: the shipped ones load, wrong ones say what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm.sentences import SentencePolicy
from pipeline.agent import AgentError, Patience, choose_agent, find_agents, load_agent
from pipeline.turns.policy import TurnPolicy


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


def test_a_file_may_let_the_first_piece_end_at_a_clause(tmp_path: Path) -> None:
    file = tmp_path / "quick.toml"
    file.write_text('persona = "x"\nlanguage = "de"\n[sentences]\nfirst_clause = true')
    agent = load_agent(file)
    assert agent.sentences.policy(agent.language) == SentencePolicy(language="de", first_clause=True)


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
