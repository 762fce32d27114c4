"""Tests know nothing of the settings of whoever runs them, and write nothing into their data folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import asr
import llm
import tts

ROOMS = (asr, llm, tts)
"""They switch off what libraries would report to their makers: before any test imports such a library."""

KEPT = ("REJOINDER_CACHE",)

for name in [name for name in os.environ if name.startswith("REJOINDER_") and name not in KEPT]:
    del os.environ[name]

_data = tempfile.TemporaryDirectory(prefix="rejoinder-tests-")
os.environ["REJOINDER_LATENCY_LOG"] = str(Path(_data.name) / "latency.db")


@pytest.fixture(scope="module")
def one_torch_thread() -> Iterator[None]:
    """For what is so small that two threads are slower."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
