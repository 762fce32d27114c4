"""The kernel's build: found again without a compiler, told plainly where it cannot be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm.targets.cpu import build
from llm.targets.cpu.build import CompilerMissing, ensure_built


def without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(build.shutil, "which", lambda name: None)


def test_a_built_kernel_needs_no_compiler(kernel: object, monkeypatch: pytest.MonkeyPatch) -> None:
    without_compiler(monkeypatch)
    told: list[str] = []
    assert ensure_built(progress=told.append) is kernel
    assert told == []


def test_no_compiler_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_compiler(monkeypatch)
    with pytest.raises(CompilerMissing, match=r"install g\+\+"):
        ensure_built(cache=tmp_path)


def test_a_compiler_that_fails_is_told_and_leaves_no_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "/bin/false")
    killed = tmp_path / "kernels" / build.kernel_key() / "build"
    killed.mkdir(parents=True)
    (killed / "lock").touch()  # what a build that was killed has left
    with pytest.raises(CompilerMissing, match="/bin/false"):
        ensure_built(cache=tmp_path)
    assert list(tmp_path.rglob("*.so")) == []
