"""`rejoinder llm train-heads`: what it asks for, says, and does when it is stopped."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from web import cli
from web.commands import llm

DONE = {
    "kind": "medusa",
    "base": "a-model.gguf",
    "out": "heads",
    "steps": 3,
    "texts": 7,
    "tokens": 1234,
    "first_loss": 9.0,
    "last_loss": 4.0,
    "before": (0.01, 0.0),
    "after": (0.4, 0.2),
    "seconds": 12.0,
}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.main, ["llm", "train-heads", "--out", "heads", *arguments])


def trains(monkeypatch: pytest.MonkeyPatch, does: Callable[..., dict[str, Any]]) -> None:
    monkeypatch.setattr(llm, "train_heads", does)


def test_it_wants_one_source_of_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    trains(monkeypatch, lambda *_, **__: DONE)
    for arguments in ((), ("--corpus", "a.txt", "--own-replies", "b.txt")):
        refused = run(*arguments)
        assert refused.exit_code == 2
        assert "--own-replies" in refused.output


def test_it_says_what_was_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def train(settings: Any, kind: str, out: Path, **rest: Any) -> dict[str, Any]:
        asked.extend((settings.llm, kind, out, rest["steps"]))
        rest["progress"]("reading the texts", 1, 2)
        rest["progress"]("training, loss 5.000", 1, 3)
        return DONE

    trains(monkeypatch, train)
    said = run("--corpus", "a.txt", "--model", "smallest", "--steps", "3")
    assert said.exit_code == 0
    assert asked == ["smollm2-135m", "medusa", Path("heads"), 3]
    assert "token 2: right 0% of the time before, 20% after" in said.output
    assert "--draft-heads heads" in said.output
    assert json.loads(run("--corpus", "a.txt", "--json").stdout)["texts"] == 7


def test_control_c_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any, **__: Any) -> dict[str, Any]:
        raise KeyboardInterrupt

    trains(monkeypatch, stopped)
    said = run("--corpus", "a.txt")
    assert said.exit_code == 130
    assert "Nothing was written" in said.output


def test_what_cannot_be_trained_is_told(tmp_path: Path) -> None:
    unknown = run("--corpus", "a.txt", "--model", "absent-model")
    assert unknown.exit_code == 2
    assert "neither a known model" in unknown.output
