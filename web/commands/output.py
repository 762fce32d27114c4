"""What the subcommands share: printing, and ending with a clear error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

from pipeline.places import in_words

console = Console()
errors = Console(stderr=True)


def print_json(data: Any) -> None:
    """Data for programs, on standard output and nothing else with it."""
    typer.echo(json.dumps(data, indent=2, ensure_ascii=False))


@contextmanager
def clear_errors(*kinds: type[Exception]) -> Iterator[None]:
    """End with status 1 and the message of an expected error, without a traceback."""
    try:
        yield
    except kinds as error:
        errors.print(f"[bold red]Error:[/] {escape(in_words(error))}", highlight=False, soft_wrap=True)
        raise typer.Exit(1) from error
