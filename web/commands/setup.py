"""`rejoinder setup`: bring the models that the settings name, build the kernel, pack the models for it."""

from __future__ import annotations

from pipeline.config import Settings
from pipeline.loading import preparation
from web.commands.models import MODEL_ERRORS, pull_with_progress
from web.options import with_settings
from web.output import clear_errors, console


@with_settings
def setup(settings: Settings) -> None:
    with clear_errors(*MODEL_ERRORS):
        pull_with_progress(preparation.models(settings))
    with (
        clear_errors(*MODEL_ERRORS),
        console.status("looking for the language model's kernel") as status,
    ):
        problem = preparation.build_kernel(status.update)
    console.print(f"[yellow]No kernel:[/] {problem}" if problem else "The language model's kernel is built.")
    if not problem:
        with (
            clear_errors(*MODEL_ERRORS, ValueError),
            console.status("looking for the packed model") as status,
        ):
            packed = preparation.pack_models(settings, status.update)
        if packed:
            console.print(f"Packed for this machine: {', '.join(packed)}.")
