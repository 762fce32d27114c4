"""What tests need from the machine beside the `dev` extra; `make test-packages` fetches what can be fetched.

Where that is missing, a test fails in CI, which must run everything; elsewhere it is skipped and says what to
install. A test of what belongs to the machine itself (its processor, its network) is skipped everywhere.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import pytest

from fixtures.recordings import FOLDER, PACKAGE

PATIENCE = 60.0
"""Seconds after which a test gives up on what should have happened at once; a busy machine may take many."""
PIPECAT = Path(sys.prefix) / "pipecat"
"""Its serializers and what they import, which `make test-packages` puts into a folder of their own."""
PROCESSORS = {
    "amx": "an Intel Xeon of the 4th generation or later",
    "avx512-vnni": "an Intel Xeon of the 2nd generation or later, or an AMD Zen 4 or later",
    "avx2": "an Intel Haswell, an AMD Excavator or later",
}
"""Who has each of the kernel's instruction sets."""


def recordings() -> Path:
    """The folder of `fixtures.recordings`."""
    return FOLDER if FOLDER.is_dir() else _missing_package(PACKAGE)


def program(name: str, package: str | None = None) -> str:
    """The path of a program, servers' among them."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    return found or _missing_package(package or name)


def pipecat(module: str) -> ModuleType:
    """A module of pipecat. What our own environment has, too, is taken from there."""
    if str(PIPECAT) not in sys.path:
        sys.path.append(str(PIPECAT))
    try:
        return importlib.import_module(f"pipecat.{module}")
    except ModuleNotFoundError as error:
        _missing(f"the Python module {error.name}, which pipecat's serializers need: make test-packages")


def needs_processor(path: str, supported: Sequence[str]) -> None:
    """Skips the test where the processor cannot run the kernel's `path`."""
    if path not in supported:
        pytest.skip(f"this processor has no {path}: it takes {PROCESSORS[path]}")


def _missing_package(package: str) -> NoReturn:
    _missing(f"the Debian package {package}: make test-packages, or apt-get install {package}")


def _missing(what: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(f"missing: {what}")
    pytest.skip(f"missing: {what}")
