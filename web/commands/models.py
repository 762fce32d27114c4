"""`rejoinder models`: what there is, what is here, bring it, check it."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.box import SIMPLE
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Column, Table

from pipeline.models import catalogue
from pipeline.models.catalogue import Artifact, ArtifactUnavailable, UnknownArtifact
from pipeline.models.fetch import CacheFull
from web.output import clear_errors, console, print_json

app = typer.Typer(no_args_is_help=True, help="List, pull and verify the models.")

Json = Annotated[bool, typer.Option("--json", help="For programs.")]
Names = Annotated[
    list[str] | None, typer.Argument(help="Models by name; none: see below.", show_default=False)
]

MODEL_ERRORS = (UnknownArtifact, ArtifactUnavailable, CacheFull, OSError)


@app.command("list")
def list_models(as_json: Json = False) -> None:
    """Show every model of the catalogue and whether it is on this machine."""
    with clear_errors(*MODEL_ERRORS):
        described = [_described(artifact) for artifact in catalogue.artifacts().values()]
    if as_json:
        print_json(described)
        return
    table = Table("Model", "Role", Column("Size", justify="right"), "Here", "What it is", box=SIMPLE)
    table.title = f"Models in {catalogue.cache()} (bold: the default agent's)"
    for artifact in catalogue.artifacts().values():
        here = "[red]no[/]" if artifact.missing() else "[green]yes[/]"
        name = f"[bold]{artifact.name}[/]" if artifact.default else artifact.name
        table.add_row(
            name, artifact.role, _megabytes(artifact), here, f"{artifact.about} ({artifact.licence})"
        )
    console.print(table)


@app.command()
def pull(
    names: Names = None,
    everything: Annotated[bool, typer.Option("--all", help="Every model of the catalogue.")] = False,
) -> None:
    """Bring models into the cache; without names, those the default agent needs."""
    wanted = list(catalogue.artifacts().values()) if everything else catalogue.defaults()
    with clear_errors(*MODEL_ERRORS):
        pull_with_progress(_chosen(names) if names else wanted)


@app.command()
def verify(names: Names = None, as_json: Json = False) -> None:
    """Hash the models that are here; without names, all of them. Status 1 when a file is damaged."""
    with clear_errors(*MODEL_ERRORS):
        chosen = _chosen(names) if names else [a for a in catalogue.artifacts().values() if a.place.is_dir()]
        with console.status("hashing") as status:
            found = {}
            for artifact in chosen:
                status.update(f"hashing {artifact.name}")
                found[artifact.name] = catalogue.verify(artifact)
    if as_json:
        print_json(found)
    else:
        _print_states(found)
    wanted = {"verified", "absent"} if not names else {"verified"}
    if any(state not in wanted for files in found.values() for state in files.values()):
        raise typer.Exit(1)


def pull_with_progress(artifacts: list[Artifact]) -> None:
    """Pull what is missing with a bar for each. Raises as `catalogue.pull`."""
    missing = [artifact for artifact in artifacts if artifact.missing()]
    if not missing:
        console.print(f"All here: {', '.join(artifact.name for artifact in artifacts)}.")
        return
    with _bars() as bars:
        for artifact in missing:
            task = bars.add_task(artifact.name, total=artifact.size)

            def advance(here: int, total: int, task: Any = task) -> None:
                bars.update(task, completed=here, total=total)

            catalogue.pull(artifact, advance)
            bars.update(task, completed=artifact.size)


def _bars() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("[progress.description]{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=console,
    )


def _chosen(names: list[str]) -> list[Artifact]:
    return [catalogue.get(name) for name in names]


def _described(artifact: Artifact) -> dict[str, Any]:
    return {
        **artifact.model_dump(mode="json", include={"name", "role", "about", "licence", "default"}),
        "bytes": artifact.size,
        "present": not artifact.missing(),
        "path": str(artifact.path),
        "repository": artifact.repository,
        "revision": artifact.revision,
        "files": {file.name: file.sha256 for file in artifact.file},
    }


def _print_states(found: dict[str, dict[str, catalogue.State]]) -> None:
    colours = {"verified": "green", "absent": "yellow", "damaged": "red"}
    table = Table("Model", "File", "State")
    for name, files in found.items():
        for file, state in files.items():
            shown = "damaged, removed: pull it again" if state == "damaged" else state
            table.add_row(name, file, f"[{colours[state]}]{shown}[/]")
    console.print(table)


def _megabytes(artifact: Artifact) -> str:
    return f"{artifact.size / 1e6:,.0f} MB"
