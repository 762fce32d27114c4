"""`rejoinder config`: every setting and where its value came from."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Column, Table

from pipeline.config import Settings, describe
from web.options import with_settings
from web.output import console, print_json


@with_settings
def config(
    settings: Settings,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    described = describe(settings)
    if as_json:
        print_json(described)
        return
    table = Table("Setting", Column("Value", overflow="fold"), Column("From", overflow="fold"))
    for name, entry in described.items():
        value = "" if entry["value"] is None else str(entry["value"])
        style = None if entry["source"] == "default" else "bold"
        table.add_row(name, value, entry["source"], style=style)
    console.print(table)
