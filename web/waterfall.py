"""One turn's stages as bars on a common axis, for the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table
from rich.text import Text

from pipeline.telemetry.timeline import DURATIONS

LABELS = {
    "endpoint": ("end of turn", "bright_black"),
    "asr": ("recognition", "cyan"),
    "ttft": ("first token", "blue"),
    "first_sentence": ("first sentence", "magenta"),
    "tts": ("voice", "red"),
    "after_commit": ("release", "yellow"),
}
"""Stages by the name of their duration: label and colour."""

_WIDTH = 50
_DRAFTED, _OPEN = "▒", "█"


def waterfall(marks: Mapping[str, float], durations: Mapping[str, float]) -> Table:
    """A row a stage, from its first mark to its second. `marks` are milliseconds from the end of speech.

    Shaded: done before the turn was decided to be over (behind the commit gate); solid: after it.
    """
    spans = {name: span for name in LABELS if (span := _span(name, marks)) is not None}
    first = min([0.0, *(start for start, _ in spans.values())])
    last = max([first + 1.0, *(end for _, end in spans.values())])
    scale = _WIDTH / (last - first)
    table = Table.grid(padding=(0, 1))
    table.add_column(min_width=14)
    table.add_column(min_width=_WIDTH)
    table.add_column(justify="right", no_wrap=True)
    for name, (start, end) in spans.items():
        label, colour = LABELS[name]
        bar = _bar(start - first, end - first, marks.get("commit", last) - first, scale)
        table.add_row(label, Text(bar, style=colour), f"{durations.get(name, end - start):.0f} ms")
    if "voice_to_voice" in durations:
        table.add_row(
            Text("voice to voice", style="bold"), "", Text(f"{durations['voice_to_voice']:.0f} ms", "bold")
        )
    return table


def _span(name: str, marks: Mapping[str, float]) -> tuple[float, float] | None:
    start, end = (marks.get(mark) for mark in DURATIONS[name])
    return None if start is None or end is None else (start, end)


def _bar(start: float, end: float, gate: float, scale: float) -> str:
    """At least one cell for a stage that took any time."""
    begin, stop = round(start * scale), round(end * scale)
    if end > start:
        stop = max(stop, begin + 1)
    opens = min(max(round(gate * scale), begin), stop)
    return " " * begin + _DRAFTED * (opens - begin) + _OPEN * (stop - opens)
