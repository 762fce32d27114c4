"""Users without a home folder, without an entry in the system's list of users, or with a home that is not
theirs to write: every command works or says which setting to give, and none ends in a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import soundfile

from pipeline import places
from pipeline.models import catalogue

LAUNCH = """
import pwd
def nobody_knows(who): raise KeyError(who)
pwd.getpwuid = pwd.getpwnam = nobody_knows
from web.cli import run
run()
"""
"""The command for a user id without an entry in /etc/passwd, as `docker run --user 4711` has it."""

NO_HOME: dict[str, str] = {}
FOREIGN_HOME = {"HOME": "/dev/null/nobody"}  # what not even root may write to
SMALL = ["--llm", "smallest", "--asr-model", "whisper-tiny.en"]
WRITING = [
    (["models", "pull", "smollm2-135m"], NO_HOME),
    (["setup", *SMALL], FOREIGN_HOME),
    (["serve", "--port", "0", *SMALL], NO_HOME),
    (["serve", "--port", "0", *SMALL], FOREIGN_HOME),
    (["explain", "Hello?", *SMALL], NO_HOME),
]


def run(
    folder: Path, arguments: Sequence[str], home: dict[str, str], **variables: str
) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name != "HOME" and not name.startswith(("XDG_", "REJOINDER_"))
    }
    root = str(Path(__file__).parents[2])
    environment = {**kept, "PYTHONPATH": root, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=0", "COLUMNS": "500"}
    ran = subprocess.run(
        [sys.executable, "-c", LAUNCH, *arguments],
        env={**environment, **home, **variables},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert "Traceback" not in ran.stderr + ran.stdout, ran.stderr
    assert "│" not in ran.stderr, f"typer's traceback: {ran.stderr}"
    return ran


@pytest.fixture
def question(tmp_path: Path) -> Path:
    path = tmp_path / "question.wav"
    soundfile.write(path, np.zeros(8000, np.float32), 16_000)
    return path


@pytest.mark.parametrize(("command", "home"), WRITING)
def test_what_needs_the_models_names_the_variable(
    tmp_path: Path, command: list[str], home: dict[str, str]
) -> None:
    ran = run(tmp_path, command, home)
    assert ran.returncode == 1
    assert "Error:" in ran.stderr
    assert "et REJOINDER_CACHE to a folder that this user may write to" in ran.stderr
    assert list(tmp_path.iterdir()) == [], "nothing is written into a folder named ~"


@pytest.mark.parametrize("home", [NO_HOME, FOREIGN_HOME], ids=["no home", "foreign home"])
def test_what_needs_no_folder_works(tmp_path: Path, home: dict[str, str]) -> None:
    assert run(tmp_path, ["--help"], home).returncode == 0
    assert run(tmp_path, ["phone", "twiml", "--url", "wss://voice.example.com"], home).returncode == 0
    shown = run(tmp_path, ["config", "--json"], home)
    assert json.loads(shown.stdout)["latency_log"]["value"].endswith("rejoinder/latency.db")


@pytest.mark.parametrize("home", [NO_HOME, FOREIGN_HOME], ids=["no home", "foreign home"])
def test_the_doctor_says_what_to_set(tmp_path: Path, home: dict[str, str]) -> None:
    ran = run(tmp_path, ["doctor", "--json", "--port", "0"], home)
    report = json.loads(ran.stdout)
    bad = [f"{found['detail']} {found['advice']}" for found in report["findings"] if found["state"] == "bad"]
    assert any("REJOINDER_CACHE" in words for words in bad)
    ran = run(tmp_path, ["doctor", "--json", "--port", "0"], home, REJOINDER_CACHE=str(places.cache()))
    disk = next(found for found in json.loads(ran.stdout)["findings"] if found["what"] == "disk")
    assert disk["state"] == "bad"
    assert "REJOINDER_LATENCY_LOG" in disk["advice"]


def test_the_log_has_no_place_without_a_home(tmp_path: Path) -> None:
    reading = run(tmp_path, ["latency"], NO_HOME)
    assert reading.returncode == 1
    assert "no home folder for the latency log" in reading.stderr
    assert "REJOINDER_LATENCY_LOG" in reading.stderr


def test_a_log_that_cannot_be_written_names_its_setting(tmp_path: Path, question: Path) -> None:
    cache = str(places.cache())
    for artifact in ("smollm2-135m", "whisper-tiny.en", "smart-turn-v3.2"):
        catalogue.path(artifact)
    for home in (NO_HOME, FOREIGN_HOME):
        ran = run(tmp_path, ["talk", str(question), *SMALL], home, REJOINDER_CACHE=cache)
        assert ran.returncode == 1
        assert "latency log" in ran.stderr
        assert "REJOINDER_LATENCY_LOG" in ran.stderr


def test_a_models_folder_in_an_unknown_home_is_none(tmp_path: Path) -> None:
    ran = run(tmp_path, ["models", "list"], FOREIGN_HOME, REJOINDER_CACHE="~nobody-of-this-name/models")
    assert ran.returncode == 1
    assert "set REJOINDER_CACHE" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--asr-model", "~stranger/whisper"], "neither a known model nor an existing path"),
        (["--llm", "~stranger/model.gguf"], "neither a known model nor an existing path"),
        (["--agents-dir", "~stranger/agents"], "agents folder ~stranger/agents does not exist"),
        (["--agent", "~stranger/agent.toml"], "there is no agent file ~stranger/agent.toml"),
    ],
)
def test_a_path_in_a_strangers_home_is_a_path_that_is_not_there(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    ran = run(tmp_path, ["serve", "--port", "0", *arguments], NO_HOME, REJOINDER_CACHE=str(places.cache()))
    assert ran.returncode == 1
    assert message in ran.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_a_working_folder_that_may_not_be_looked_into(tmp_path: Path) -> None:
    """Real rights and a real user id without an entry: nothing is simulated but who starts it."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "rejoinder.toml").write_text("port = 1\n")
    code = (
        "import os, sys\n"
        "from web.options import load\n"
        "os.environ.pop('HOME', None)\n"
        "os.setgroups([]); os.setgid(54321); os.setuid(54321)\n"
        "print(load().port, load({'agent': 'receptionist'}).latency_log)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=closed,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("8765 ")
