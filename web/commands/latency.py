"""`rejoinder latency`: where the time of the last turns went."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from rich.table import Table

from pipeline.config import Settings
from pipeline.telemetry import latency_log
from web.options import with_settings
from web.output import clear_errors, console, print_json
from web.terminal import is_unicode

STAGES = {
    "endpoint": "end of speech to the decision that the turn is over",
    "asr": "end of speech to the final transcript",
    "ttft": "language model's start to its first token",
    "first_sentence": "first token to the end of the first sentence",
    "tts": "voice's start to its first audio",
    "after_commit": "decision to the first audio on the wire",
    "voice_to_voice": "end of speech to the first audio on the wire",
}


@with_settings
def latency(
    settings: Settings,
    last: Annotated[int | None, typer.Option("--last", min=1, help="Only so many turns.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    by_turn: Annotated[
        bool, typer.Option("--turns", help="The turns themselves, one a line of JSON.")
    ] = False,
) -> None:
    if by_turn:
        _print_turns(settings, last)
        return
    with clear_errors(latency_log.LatencyLogError):
        turns = latency_log.turns(settings.latency_log, last)
        stages = latency_log.percentiles(settings.latency_log, last)
        drafts = latency_log.drafts(settings.latency_log, last)
    if as_json:
        print_json({"turns": turns, "stages": stages, "drafts": drafts})
        return
    table = Table("Stage", title=f"{turns} turns, milliseconds")
    for percentile in latency_log.PERCENTILES:
        table.add_column(f"p{percentile}", justify="right")
    table.add_column("From where to where")
    for stage, cuts in stages.items():
        table.add_row(stage, *(f"{ms:,.0f}" for ms in cuts.values()), STAGES[stage])
    console.print(table)
    if drafts["shares"]:
        console.print(_in_words(drafts))


def _in_words(drafts: dict[str, Any]) -> str:
    shares = ", ".join(f"{share:.0%} {fate}" for fate, share in drafts["shares"].items())
    skipped = ", ".join(f"{turns} for {reason}" for reason, turns in drafts["skipped"].items())
    skips = f"; not drafted: {skipped}" if skipped else ""
    return (
        f"Answers drafted before the turn was over: {shares}; {drafts['tokens_wasted']} tokens wasted{skips}."
    )


def _print_turns(settings: Settings, last: int | None) -> None:
    """Oldest first."""
    with clear_errors(latency_log.LatencyLogError):
        records = latency_log.recent(settings.latency_log, last)
    plain = not is_unicode(sys.stdout)
    for record in reversed(records):
        typer.echo(
            latency_log.json_lines(record, mask_callers=settings.mask_caller_numbers, ascii_only=plain)
        )
