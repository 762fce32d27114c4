"""What the commands print on terminals and pipes of any encoding: less pretty at worst, never a failure."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import report
from llm.explain import ExplainedPass, Explanation
from pipeline.telemetry.latency_log import LatencyLog
from web.cli import run
from web.commands import call, explain, talk
from web.talk_client import TalkTurn
from web.terminal import likeness, show_on_any_terminal

ENCODINGS = ["ascii", "latin-1", "cp1252", "koi8-r", "cp037", "utf-16", "utf-8"]
WORDS = "Zwölf – „Œuvre“ 你好 🙂 \udce9"  # the last: half a character
RECORD: dict[str, Any] = {
    "caller_text": WORDS,
    "reply_text": f"{WORDS} …",
    "heard_text": WORDS,
    "marks": {
        "speech_end": 0.0,
        "asr_final": 200.0,
        "llm_start": 200.0,
        "llm_first_token": 400.0,
        "commit": 300.0,
    },
    "durations": {"asr": 200.0, "ttft": 200.0},
}

Printed = Callable[[Callable[[], None]], str]


@pytest.fixture(params=ENCODINGS)
def printed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Printed:
    """What an action prints on a terminal of this encoding, as that terminal reads it."""

    def act(action: Callable[[], None]) -> str:
        streams = {name: io.BytesIO() for name in ("stdout", "stderr")}
        for name, stream in streams.items():
            text = io.TextIOWrapper(stream, encoding=request.param, errors="strict", write_through=True)
            monkeypatch.setattr(sys, name, text)
        show_on_any_terminal()
        action()
        return "".join(stream.getvalue().decode(request.param) for stream in streams.values())

    return act


def command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Callable[[], None]:
    """The command as the console runs it; ended with status 0, or 1 for what it finds amiss."""

    def act() -> None:
        monkeypatch.setattr(sys, "argv", ["rejoinder", *arguments])
        with pytest.raises(SystemExit) as ended:
            run()
        assert ended.value.code in (0, 1)

    return act


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "latency.db"
    written = LatencyLog(path)
    half = WORDS.replace("\udce9", "")  # SQLite takes whole characters only
    turn = {"call_id": "c", "turn": 1, "revision": 0, "started_at": "", "caller_text": half, "agent": "é"}
    written.append({**turn, "durations": {"asr": 1.0, "ttft": 2.0}, "extra": {"draft_skipped": "calls"}})
    written.close()
    return path


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["talk", "--help"], ["models", "list"], ["config", "--agents-dir", "ünder"], ["doctor"]],
    ids=" ".join,
)
def test_tables_and_help(
    printed: Printed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str]
) -> None:
    monkeypatch.setenv("REJOINDER_CACHE", str(tmp_path))
    assert len(printed(command(monkeypatch, *arguments))) > 200


def test_the_latency_log(printed: Printed, monkeypatch: pytest.MonkeyPatch, log: Path) -> None:
    assert "1 turns" in printed(command(monkeypatch, "latency", "--latency-log", str(log)))
    lines = printed(command(monkeypatch, "latency", "--turns", "--latency-log", str(log)))
    assert json.loads(lines)["caller_text"] == WORDS.replace("\udce9", "")


@pytest.mark.parametrize(
    "arguments",
    [["models", "list", "--json"], ["config", "--json", "--agents-dir", "ünder–你"]],
    ids=" ".join,
)
def test_json_is_the_same_data_in_every_encoding(
    printed: Printed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str]
) -> None:
    monkeypatch.setenv("REJOINDER_CACHE", str(tmp_path))
    data = json.loads(printed(command(monkeypatch, *arguments)))
    if "config" in arguments:
        assert data["agents_dir"]["value"] == "ünder–你"


def test_errors_with_names_of_any_characters(printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = printed(command(monkeypatch, "talk", "fr\udce9d\u00e9ric – 你.wav"))
    assert "there is no file" in shown


def test_a_conversation(printed: Printed) -> None:
    shown = printed(lambda: talk._show(TalkTurn(RECORD, np.zeros(0, np.float32))))
    assert "Agent" in shown
    assert "recognition" in shown
    assert any(bar in shown for bar in ("▒", ":::"))
    assert "lf" in printed(lambda: call._show(RECORD))


def test_an_explained_reply(printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    one = ExplainedPass("lookup", (" Zwölf\n", "你"), 1, "é", ended=False)
    explanation = Explanation(WORDS, "end", (one,), {"verification": "coupled"})
    monkeypatch.setattr(explain, "explain_reply", lambda *_, **__: explanation)
    assert "1 passes" in printed(command(monkeypatch, "explain", "Hello?"))
    assert json.loads(printed(command(monkeypatch, "explain", "Hello?", "--json")))["passes"][0]["own"] == "é"


def test_a_document_for_a_carrier_keeps_its_characters(
    printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = printed(command(monkeypatch, "phone", "twiml", "--url", "wss://h.example", "--agent", "Jörg"))
    assert "Jörg" in shown or "J&#246;rg" in shown


def test_a_benchmarks_table(printed: Printed) -> None:
    assert "ms" in printed(lambda: report.report(WORDS, {"größte – ms": 1.0}, (), as_json=False))
    assert json.loads(printed(lambda: report.report("", {"größte": 1.0}, (), as_json=True))) == {
        "größte": 1.0,
        "goals": [],
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("█▒", "#:"),
        ("Zwölf … Œ", "Zwolf ... ?"),
        ("⠋", "."),
        ("ﬁ", "fi"),
        ("\udce9", "?"),
        ("plain", "plain"),
    ],
)
def test_what_stands_for_what(text: str, shown: str) -> None:
    assert likeness(text) == shown


CLOSED_EARLY = [
    ["models", "list"],
    ["models", "list", "--json"],
    ["config"],
    ["config", "--json"],
    ["--help"],
]


@pytest.mark.parametrize("arguments", CLOSED_EARLY, ids=" ".join)
def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path, arguments: list[str]) -> None:
    ran = piped(arguments, "{command} | :", tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("arguments", CLOSED_EARLY[:2], ids=" ".join)
def test_no_standard_output_at_all(tmp_path: Path, arguments: list[str]) -> None:
    ran = piped(arguments, "{command} >&-", tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert piped(arguments, "{command} >&- 2>&-", tmp_path).returncode == 0


def piped(arguments: list[str], line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command, run by a shell in such a line."""
    start = f'"{sys.executable}" -c "from web.cli import run; run()" {" ".join(arguments)}'
    root = str(Path(__file__).parents[2])
    return subprocess.run(
        ["sh", "-c", line.format(command=start)],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": root, "HOME": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
