"""Every setting as an option of a subcommand, so that flags, variables and file know the same names."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from pipeline.config import ConfigError, Settings, load
from web.output import clear_errors

GROUP = "Settings (over REJOINDER_* variables, over rejoinder.toml)"


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give `command`, whose first parameter is `settings: Settings`, an option for every setting.

    A setting that is wrong ends the command with its message and status 1.
    """

    @wraps(command)
    def run(**given: Any) -> None:
        file = given.pop("config_file")
        flags = {name: given.pop(name) for name in Settings.model_fields}
        with clear_errors(ConfigError):
            settings = load(flags, file=file)
        command(settings, **given)

    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    run.__signature__ = inspect.Signature([*own, _config_option(), *_setting_options()])  # type: ignore[attr-defined]
    return run


def _config_option() -> inspect.Parameter:
    option = typer.Option("--config", help="The TOML file to read.", rich_help_panel=GROUP)
    return _parameter("config_file", Annotated[Path | None, option])


def _setting_options() -> list[inspect.Parameter]:
    options: list[inspect.Parameter] = []
    for name, field in Settings.model_fields.items():
        flag = "--" + name.replace("_", "-")
        # Values stay text here: Settings parses them, and says where a wrong one came from.
        kind: Any = str
        shown: str | None = "NUMBER" if field.annotation in (int, float) else "TEXT"
        if field.annotation is bool:
            kind, shown, flag = bool, None, f"{flag}/--no-{flag[2:]}"
        option = typer.Option(flag, help=field.description, metavar=shown, rich_help_panel=GROUP)
        options.append(_parameter(name, Annotated[kind | None, option]))
    return options


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
