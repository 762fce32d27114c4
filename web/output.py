"""What the subcommands share: printing, and ending with a clear error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

from pipeline.places import in_words
from web.terminal import is_unicode

console = Console()
errors = Console(stderr=True)


def print_json(data: Any) -> None:
    """Data for programs, on standard output and nothing else with it: the same data whatever its encoding."""
    typer.echo(json.dumps(data, indent=2, ensure_ascii=not is_unicode(sys.stdout)))


def print_xml(document: str) -> None:
    """A document on standard output; what its encoding lacks as character references."""
    typer.echo(
        document
        if is_unicode(sys.stdout)
        else document.encode("ascii", errors="xmlcharrefreplace").decode("ascii"),
        nl=False,
    )


@contextmanager
def clear_errors(*kinds: type[Exception]) -> Iterator[None]:
    """End with status 1 and the message of an expected error, without a traceback."""
    try:
        yield
    except kinds as error:
        errors.print(f"[bold red]Error:[/] {escape(in_words(error))}", highlight=False, soft_wrap=True)
        raise typer.Exit(1) from error
