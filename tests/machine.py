"""What tests need from the machine beside Python packages: Debian packages that `make test` installs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

from fixtures.recordings import FOLDER, PACKAGE


def recordings() -> Path:
    """The folder of `fixtures.recordings`."""
    return FOLDER if FOLDER.is_dir() else _missing(PACKAGE)


def program(name: str, package: str | None = None) -> str:
    """The path of a program, servers' among them."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    return found or _missing(package or name)


def _missing(package: str) -> NoReturn:
    """A failure in CI, which must run everything; elsewhere the test is skipped and says why."""
    message = f"the Debian package {package} is missing: apt-get install {package}"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)
