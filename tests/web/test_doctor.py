"""The doctor: what it says of a machine that lacks something, and that it only looks."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from llm.targets.cpu import build
from pipeline.config import Settings
from pipeline.models import catalogue
from web.cli import main
from web.commands import doctor


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REJOINDER_CACHE", str(tmp_path / "cache"))


def test_it_looks_at_everything_and_reports_for_programs() -> None:
    result = CliRunner().invoke(main, ["doctor", "--json", "--port", "0"])
    report = json.loads(result.output)
    found = {finding["what"]: finding for finding in report["findings"]}
    assert set(found) == {
        "processor",
        "GPU",
        "C++ compiler",
        "kernel",
        "models",
        "disk",
        "port",
        "microphone page",
        "for `make test`",
    }
    assert "cores" in found["processor"]["detail"]
    assert found["models"]["state"] == "bad", "the cache is empty"
    assert (report["works"], result.exit_code) == (False, 1)


def test_missing_and_damaged_models_are_named_and_left_alone() -> None:
    turn = catalogue.get("smart-turn-v3.2")
    turn.place.mkdir(parents=True)
    turn.path.write_bytes(b"no model")
    finding = doctor.models(Settings(llm="smollm2-135m", asr_model="whisper-tiny.en"))
    assert finding.state == "bad"
    assert "smart-turn-v3.2-cpu.onnx of smart-turn-v3.2 is damaged" in finding.detail
    assert "SmolLM2-135M-Instruct.Q4_1.gguf of smollm2-135m is absent" in finding.detail
    assert turn.path.exists()
    assert "models pull" in finding.advice


def test_a_taken_port_is_told_from_a_free_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert doctor.port(Settings(port=port)).state == "bad"
    assert doctor.port(Settings(port=0)).state == "good"


def test_an_ipv6_address_is_looked_at_like_any_other() -> None:
    try:
        taken = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no address ::1: sysctl net.ipv6.conf.lo.disable_ipv6=0")
    with taken:
        assert doctor.port(Settings(host="::1", port=taken.getsockname()[1])).state == "bad"
    assert doctor.port(Settings(host="::1", port=0)).state == "good"
    assert "http://[::1]:8765/" in doctor.microphone(Settings(host="::1")).detail


def test_a_host_that_is_none_is_a_finding() -> None:
    assert doctor.port(Settings(host="nobody.invalid", allow_unauthenticated=True)).state == "bad"


def test_the_microphone_of_another_machine_needs_https() -> None:
    assert doctor.microphone(Settings()).state == "good"
    away = doctor.microphone(Settings(host="0.0.0.0", allow_unauthenticated=True))
    assert away.state == "note"
    assert "https" in away.advice


def test_a_missing_compiler_costs_speed_not_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.delenv("CXX", raising=False)
    finding = doctor.compiler(Settings())
    assert (finding.state, "g++" in finding.advice) == ("note", True)
    assert doctor.test_programs(Settings()).advice.startswith("apt-get install chromium")


def test_a_kernel_of_another_version_is_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "converted", lambda: tmp_path)
    old = tmp_path / "kernels" / "0123456789abcdef" / f"{build.MODULE}.so"
    old.parent.mkdir(parents=True)
    old.touch()
    assert doctor.kernel(Settings()).state == "note"
    now = old.parent.with_name(build.kernel_key()) / old.name
    now.parent.mkdir()
    now.touch()
    assert doctor.kernel(Settings()).state == "good"


def test_what_may_not_be_looked_at_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each check for itself: the others are still shown."""

    def denied(**_: object) -> bool:
        raise PermissionError(13, "Permission denied", str(catalogue.converted() / "kernel.so"))

    monkeypatch.setattr(build, "is_built", denied)  # whoever runs the tests may look at everything
    result = CliRunner().invoke(main, ["doctor", "--json", "--port", "0"])
    findings = {finding["what"]: finding for finding in json.loads(result.output)["findings"]}
    assert findings["kernel"]["state"] == "bad"
    assert "Set REJOINDER_CACHE to a folder" in findings["kernel"]["detail"]
    assert findings["port"]["state"] == "good"


def test_a_full_disk_is_bad_only_while_models_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    assert doctor.disk(Settings()).state == "bad"
    monkeypatch.setattr("pipeline.loading.preparation.models", lambda settings: [])
    assert doctor.disk(Settings()).state == "note"


def test_more_threads_than_cores_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    finding = doctor.processor(Settings(llm_threads=256))
    assert finding.state == "note"
    assert "llm_threads" in finding.advice


def test_addresses_and_folders_are_shown_whole(capsys: pytest.CaptureFixture[str]) -> None:
    doctor._print([doctor.Finding("port", "bad", "[fe80::1]:8765", "see /srv/[/old]")])
    shown = capsys.readouterr().out
    assert "[fe80::1]:8765" in shown
    assert "see /srv/[/old]" in shown
