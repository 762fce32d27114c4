"""`rejoinder setup`: bring the models that the settings name and build the kernel."""

from __future__ import annotations

from pipeline import preparation
from pipeline.config import Settings
from web.commands.models import MODEL_ERRORS, pull_with_progress
from web.commands.output import clear_errors, console
from web.options import with_settings


@with_settings
def setup(settings: Settings) -> None:
    with clear_errors(*MODEL_ERRORS):
        pull_with_progress(preparation.models(settings))
    with console.status("looking for the language model's kernel") as status:
        problem = preparation.build_kernel(status.update)
    console.print(f"[yellow]No kernel:[/] {problem}" if problem else "The language model's kernel is built.")
