"""What every benchmark prints: one readable table or JSON, medians and percentiles instead of means."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from web.terminal import show_on_any_terminal


def percentile(values: Sequence[float], share: float) -> float | None:
    """The percentile (0-100) of the values, None when there are none."""
    return round(float(np.percentile(values, share)), 1) if values else None


def spread(values: Sequence[float]) -> dict[str, float | None]:
    """p50, p95 and p99."""
    return {f"p{share}": percentile(values, share) for share in (50, 95, 99)}


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {"machine": platform.machine(), "python": platform.python_version(), "system": platform.system()}


def show(
    title: str, figures: Mapping[str, Any], *, as_json: bool, goals: Mapping[str, str] | None = None
) -> None:
    """Print the figures: JSON for machines, else a table with the goal beside each figure that has one."""
    if as_json:
        print(json.dumps(figures, indent=2))
        return
    show_on_any_terminal()
    table = Table(title=title, title_justify="left")
    table.add_column("figure")
    table.add_column("measured", justify="right")
    if goals:
        table.add_column("goal", justify="right")
    for name, value in figures.items():
        if isinstance(value, Mapping):
            value = "  ".join(f"{k} {_short(v)}" for k, v in value.items())
        row = [name, _short(value)]
        table.add_row(*row, *([goals.get(name, "")] if goals else []))
    Console().print(table)


def _short(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
