"""What every benchmark prints, one readable table or JSON, and whether its goals are met.

Medians and percentiles instead of means. A goal that is missed ends the benchmark with status 1.
"""

from __future__ import annotations

import json
import operator
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.table import Table

from web.terminal import show_on_any_terminal

Comparison = Literal["<=", ">=", "=="]
Verdict = Literal["met", "missed", "not measured"]

_HOLDS: dict[Comparison, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
}


@dataclass(frozen=True, slots=True)
class Goal:
    """What a figure has to be. `name`: in words. `figure`: its key in the report, with dots into parts."""

    name: str
    figure: str
    comparison: Comparison
    bar: float

    def measured(self, figures: Mapping[str, Any]) -> float | None:
        """The figure; None where this run has not measured it."""
        found: Any = figures
        for key in self.figure.split("."):
            found = found.get(key) if isinstance(found, Mapping) else None
        return None if found is None else float(found)

    def verdict(self, figures: Mapping[str, Any]) -> Verdict:
        """What is no number (0 / 0) is missed."""
        measured = self.measured(figures)
        if measured is None:
            return "not measured"
        return "met" if _HOLDS[self.comparison](measured, self.bar) else "missed"

    def __str__(self) -> str:
        return f"{self.name} ({self.figure} {self.comparison} {self.bar:g})"


def percentile(values: Sequence[float], share: float) -> float | None:
    """The percentile (0-100) of the values, None when there are none."""
    return round(float(np.percentile(values, share)), 1) if values else None


def spread(values: Sequence[float]) -> dict[str, float | None]:
    """p50, p95 and p99."""
    return {f"p{share}": percentile(values, share) for share in (50, 95, 99)}


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "machine": platform.machine(),
        "processor": _processor(),
        "python": platform.python_version(),
        "system": platform.system(),
    }


def report(
    title: str,
    figures: Mapping[str, Any],
    goals: Sequence[Goal],
    *,
    as_json: bool,
    left_out: Sequence[str] = (),
) -> int:
    """Print the figures and what became of the goals; the exit status, 1 where one falls short.

    `left_out`: why this run has not measured everything. Without a reason a goal that was not measured falls
    short too: a benchmark that has lost a figure is not to pass.
    """
    verdicts = {goal: goal.verdict(figures) for goal in goals}
    if as_json:
        judged = [_as_dict(goal, verdict, figures) for goal, verdict in verdicts.items()]
        print(json.dumps({**figures, "goals": judged}, indent=2))  # in ASCII: valid on any terminal
    else:
        show_on_any_terminal()
        console = Console()
        console.print(_figures_table(title, figures))
        console.print(_goals_table(verdicts, figures))
    short = [goal for goal, verdict in verdicts.items() if verdict == "missed"]
    unmeasured = [goal for goal, verdict in verdicts.items() if verdict == "not measured"]
    _tell("goals missed", short, figures)
    reasons = f" ({', '.join(left_out)})" if left_out else ""
    _tell(f"goals not measured{reasons}", unmeasured, figures)
    return int(bool(short or (unmeasured and not left_out)))


def _tell(what: str, goals: Sequence[Goal], figures: Mapping[str, Any]) -> None:
    """A list on stderr, so that JSON stays alone on stdout."""
    if goals:
        print(f"{what}:", file=sys.stderr)
    for goal in goals:
        measured = goal.measured(figures)
        print(f"  {goal}" + ("" if measured is None else f": {measured:.4g}"), file=sys.stderr)


def _as_dict(goal: Goal, verdict: Verdict, figures: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": goal.name,
        "figure": goal.figure,
        "comparison": goal.comparison,
        "bar": goal.bar,
        "measured": goal.measured(figures),
        "verdict": verdict,
    }


def _figures_table(title: str, figures: Mapping[str, Any]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("figure")
    table.add_column("measured", justify="right")
    for name, value in _rows(figures):
        table.add_row(name, value)
    return table


def _rows(figures: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, str]]:
    """A figure a row, named as goals name it; what has no parts of its own is one row together."""
    for name, value in figures.items():
        if not isinstance(value, Mapping):
            yield within + name, _short(value)
        elif any(isinstance(part, Mapping) for part in value.values()):
            yield from _rows(value, f"{within}{name}.")
        else:
            yield within + name, "  ".join(f"{key} {_short(part)}" for key, part in value.items())


def _goals_table(verdicts: Mapping[Goal, Verdict], figures: Mapping[str, Any]) -> Table:
    table = Table(title="Goals", title_justify="left")
    table.add_column("goal")
    for column in ("bar", "measured", "verdict"):
        table.add_column(column, justify="right")
    for goal, verdict in verdicts.items():
        bar = f"{goal.comparison} {goal.bar:g}"
        table.add_row(goal.name, bar, _short(goal.measured(figures)), verdict)
    return table


def _processor() -> str:
    """The processor's name and the widest of its instruction sets that matter here."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            lines = dict(line.split(":", 1) for line in file if ":" in line)
    except OSError:
        return platform.processor()
    about = {key.strip(): value.strip() for key, value in lines.items()}
    sets = ("amx_int8", "avx512_vnni", "avx_vnni", "avx2")
    flags = about.get("flags", "").split()
    widest = next((name for name in sets if name in flags), "no avx2")
    return f"{about.get('model name', 'unknown')} ({widest})"


def _short(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
