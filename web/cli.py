"""The `rejoinder` command. Each subcommand is a function of the same name in `web/commands/`."""

from __future__ import annotations

import importlib
import logging
import sys
from importlib.metadata import version
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from pipeline.large_pages import start_with_large_pages
from web.terminal import show_on_any_terminal


class Subcommand(NamedTuple):
    """Where a subcommand is, and the line that `rejoinder --help` shows for it."""

    module: str
    about: str


SUBCOMMANDS = {
    "serve": Subcommand(
        "web.commands.serve", "Serve the demo page, the realtime socket and the phone bridge."
    ),
    "talk": Subcommand(
        "web.commands.talk", "Play recordings as a caller and print each turn's answer and timing."
    ),
    "latency": Subcommand("web.commands.latency", "Show where the time of the last turns went."),
    "explain": Subcommand(
        "web.commands.explain", "Show what a reply was drafted from and what the target accepted."
    ),
    "call": Subcommand(
        "web.commands.call", "Call as a telephone carrier would, with recordings as the caller."
    ),
    "phone": Subcommand("web.commands.phone", "What to paste at a carrier, and hands on a running call."),
    "setup": Subcommand(
        "web.commands.setup", "Bring the models, build the kernel and pack them for it; `serve` also does it."
    ),
    "llm": Subcommand("web.commands.llm", "Train draft heads for a language model."),
    "models": Subcommand("web.commands.models", "List, pull and verify the models."),
    "config": Subcommand("web.commands.config", "Print every setting and where its value came from."),
    "doctor": Subcommand("web.commands.doctor", "Say what works on this machine."),
}


class LazyGroup(TyperGroup):
    """Imports a subcommand's module only when it runs: `--help` loads none of the models' libraries."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(SUBCOMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """For listings: the name and its line of help."""
        known = SUBCOMMANDS.get(cmd_name)
        return TyperCommand(name=cmd_name, help=known.about) if known else None

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """For running: the real command."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, _load(name) if name and listed else listed, rest


def _load(name: str) -> Any:
    """The subcommand itself: its module has a typer app `app`, or a function named like the subcommand."""
    module: Any = importlib.import_module(SUBCOMMANDS[name].module)
    app = getattr(module, "app", None)
    if app is None:
        app = typer.Typer(add_completion=False)
        app.command(name, help=SUBCOMMANDS[name].about)(getattr(module, name))
    command = get_command(app)
    command.name = name
    return command


main = typer.Typer(cls=LazyGroup, no_args_is_help=True, pretty_exceptions_show_locals=False)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(version("rejoinder"))
        raise typer.Exit


@main.callback()
def rejoinder(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True)] = False,
) -> None:
    """A real-time voice agent: one websocket is one call, and every turn's latency is logged."""
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO, format="%(levelname)s %(name)s: %(message)s"
    )
    if not verbose:
        logging.getLogger("httpx").setLevel(logging.WARNING)


def run() -> None:
    """The console command. Serving starts anew in large pages before anything large is imported."""
    show_on_any_terminal()
    subcommand = next((word for word in sys.argv[1:] if not word.startswith("-")), None)
    if subcommand == "serve" and "--help" not in sys.argv:
        start_with_large_pages()
    main()
