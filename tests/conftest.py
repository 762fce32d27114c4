"""Tests know nothing of the settings of whoever runs them, and write nothing into their data folder."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

KEPT = ("REJOINDER_CACHE",)

for name in [name for name in os.environ if name.startswith("REJOINDER_") and name not in KEPT]:
    del os.environ[name]

_data = tempfile.TemporaryDirectory(prefix="rejoinder-tests-")
os.environ["REJOINDER_LATENCY_LOG"] = str(Path(_data.name) / "latency.db")
