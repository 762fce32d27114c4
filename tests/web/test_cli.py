"""The command line: quick help, data for programs, errors that say what to do and end with status 1."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pipeline.models import catalogue
from pipeline.telemetry.latency_log import LatencyLog
from pipeline.telemetry.timeline import DURATIONS
from web import cli
from web.cli import SUBCOMMANDS


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def rejoinder(*arguments: str) -> Result:
    return CliRunner().invoke(cli.main, arguments)


def test_help_lists_every_subcommand() -> None:
    result = rejoinder("--help")
    assert result.exit_code == 0
    assert all(name in result.output for name in SUBCOMMANDS)


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_subcommand_has_help(name: str) -> None:
    result = rejoinder(name, "--help")
    assert result.exit_code == 0, result.output
    assert "Usage" in result.output


@pytest.mark.parametrize(
    "words",
    [
        *(
            f"phone {name}"
            for name in ("twiml", "telnyx", "plivo", "ncco", "asterisk", "hang-up", "transfer")
        ),
        *(f"models {name}" for name in ("list", "pull", "verify")),
        "llm train-heads",
    ],
)
def test_every_command_below_them_has_help(words: str) -> None:
    """Square brackets in a text of help are read as markup, and fail where they close nothing."""
    result = rejoinder(*words.split(), "--help")
    assert result.exit_code == 0, result.output
    assert "Usage" in result.output


def test_help_loads_no_model_library() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from web.cli import main; "
        "CliRunner().invoke(main, ['--help']); "
        "print([name for name in ('torch', 'ctranslate2', 'onnxruntime', 'numpy') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_an_unknown_subcommand_is_refused() -> None:
    result = rejoinder("sevre")
    assert result.exit_code == 2
    assert "No such command 'sevre'" in result.output


def test_config_says_where_values_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("rejoinder.toml").write_text("max_calls = 2\n")
    monkeypatch.setenv("REJOINDER_AUTH_TOKEN", "sesame")
    result = rejoinder("config", "--json", "--port", "9000", "--no-speculate")
    described = json.loads(result.output)
    assert described["port"] == {"value": 9000, "source": "flag"}
    assert described["speculate"] == {"value": False, "source": "flag"}
    assert described["max_calls"] == {"value": 2, "source": "rejoinder.toml"}
    assert described["auth_token"]["source"] == "REJOINDER_AUTH_TOKEN"
    assert "sesame" not in result.output
    assert "rejoinder.toml" in rejoinder("config").output


def test_a_wrong_setting_ends_with_its_message() -> None:
    result = rejoinder("config", "--port", "many")
    assert result.exit_code == 1
    assert "port = 'many' (from flag)" in result.output


def test_models_are_listed_with_their_hashes() -> None:
    listed = {entry["name"]: entry for entry in json.loads(rejoinder("models", "list", "--json").output)}
    assert set(listed) == set(catalogue.artifacts())
    hibari = listed["hibari"]
    assert hibari["present"]
    assert list(hibari["files"].values()) == [catalogue.get("hibari").file[0].sha256]
    assert "whisper-base" in rejoinder("models", "list").output


def test_models_verify_tells_good_from_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REJOINDER_CACHE", str(tmp_path / "cache"))
    good = rejoinder("models", "verify", "hibari", "--json")
    assert (good.exit_code, json.loads(good.output)) == (0, {"hibari": {"hibari.onnx": "verified"}})
    turn = catalogue.get("smart-turn-v3.2")
    turn.place.mkdir(parents=True)
    turn.path.write_bytes(b"no model")
    bad = rejoinder("models", "verify", "--json")
    assert bad.exit_code == 1
    assert json.loads(bad.output)["smart-turn-v3.2"] == {"smart-turn-v3.2-cpu.onnx": "damaged"}
    assert rejoinder("models", "verify", "smart-turn-v3.2").exit_code == 1, "an absent model is not verified"


def test_pulling_what_is_here_says_so() -> None:
    result = rejoinder("models", "pull", "hibari", "silero-vad-v6")
    assert result.exit_code == 0
    assert "All here: hibari, silero-vad-v6" in result.output


def test_pulling_an_unknown_model_names_the_nearest() -> None:
    result = rejoinder("models", "pull", "hibary")
    assert result.exit_code == 1
    assert "did you mean 'hibari'?" in result.output


def test_latency_reports_percentiles(tmp_path: Path) -> None:
    path = tmp_path / "turns.db"
    log = LatencyLog(path)
    for ms in (100.0, 200.0, 300.0):
        log.append(
            {
                "call_id": "c",
                "turn": 1,
                "revision": 1,
                "started_at": "2026-01-01T00:00:00+00:00",
                "durations": dict.fromkeys(DURATIONS, ms),
            }
        )
    log.close()
    result = rejoinder("latency", "--json", "--last", "2", "--latency-log", str(path))
    report = json.loads(result.output)
    assert report["turns"] == 2
    assert set(report["stages"]) == set(DURATIONS)
    assert set(report["drafts"]) == {"shares", "tokens_wasted", "skipped"}
    assert report["stages"]["ttft"] == {"p50": 250.0, "p95": 295.0, "p99": 299.0}
    assert "voice_to_voice" in rejoinder("latency", "--latency-log", str(path)).output
    lines = rejoinder("latency", "--turns", "--latency-log", str(path)).output.splitlines()
    assert [json.loads(line)["durations"]["tts"] for line in lines] == [100.0, 200.0, 300.0]


@pytest.mark.parametrize(
    ("flag", "shown"),
    [("--mask-caller-numbers", "**********567"), ("--no-mask-caller-numbers", "+491701234567")],
)
def test_turns_show_whole_numbers_only_where_that_is_asked_for(tmp_path: Path, flag: str, shown: str) -> None:
    path = tmp_path / "turns.db"
    log = LatencyLog(path, mask_callers=False)
    started = "2026-01-01T00:00:00+00:00"
    log.append({"call_id": "c", "turn": 1, "revision": 1, "started_at": started, "caller": "+491701234567"})
    log.close()
    result = rejoinder("latency", "--turns", "--latency-log", str(path), flag)
    assert json.loads(result.output)["caller"] == shown


def test_latency_without_a_log_says_what_to_do(tmp_path: Path) -> None:
    result = rejoinder("latency", "--latency-log", str(tmp_path / "none.db"))
    assert result.exit_code == 1
    assert "make a call first" in result.output


@pytest.mark.parametrize(
    ("words", "anew"),
    [
        (["serve"], True),
        (["-v", "serve", "--port", "0"], True),
        (["serve", "--help"], False),
        (["latency", "serve"], False),
        ([], False),
    ],
)
def test_only_serving_starts_anew_in_large_pages(
    words: list[str], anew: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    monkeypatch.setattr("sys.argv", ["rejoinder", *words])
    monkeypatch.setattr("web.cli.start_with_large_pages", lambda: begun.append("anew"))
    monkeypatch.setattr("web.cli.main", lambda: begun.append("main"))
    cli.run()
    assert begun == (["anew", "main"] if anew else ["main"])
