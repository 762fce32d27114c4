"""The process starts anew once, with what it was started with, unless somebody has decided already."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, sys
from pipeline.large_pages import start_with_large_pages
print("began", flush=True)
start_with_large_pages()
print(os.environ.get("GLIBC_TUNABLES"), sys.argv[1:], os.getpid())
"""


def started(said: str | None, *arguments: str, program: str = PROGRAM) -> tuple[list[str], int]:
    environment = {name: value for name, value in os.environ.items() if name != "GLIBC_TUNABLES"}
    if said is not None:
        environment["GLIBC_TUNABLES"] = said
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments], env=environment, stdout=subprocess.PIPE, text=True
    )
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return out.splitlines(), process.pid


def offered() -> bool:
    enabled = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return platform.libc_ver()[0] == "glibc" and enabled.exists() and "[never]" not in enabled.read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="large pages are Linux's")
@pytest.mark.parametrize(
    ("said", "then"),
    [
        (None, "glibc.malloc.hugetlb=1"),
        ("glibc.malloc.check=0", "glibc.malloc.check=0:glibc.malloc.hugetlb=1"),
    ],
)
def test_the_same_process_starts_anew_with_its_arguments(said: str | None, then: str) -> None:
    if not offered():
        pytest.skip("no large pages: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, with glibc")
    lines, pid = started(said, "one", "two words")
    assert lines == ["began", "began", f"{then} ['one', 'two words'] {pid}"]


@pytest.mark.parametrize("said", [None, "glibc.malloc.check=0"])
def test_a_python_that_cannot_be_started_again_goes_on_without(said: str | None) -> None:
    gone = PROGRAM.replace("start_with_large_pages()", "sys.executable += '-gone'; start_with_large_pages()")
    lines, pid = started(said, program=gone)
    assert lines == ["began", f"{said} [] {pid}"]


def test_what_was_decided_stays() -> None:
    lines, pid = started("glibc.malloc.hugetlb=0")
    assert lines == ["began", f"glibc.malloc.hugetlb=0 [] {pid}"]
