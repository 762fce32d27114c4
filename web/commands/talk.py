"""`rejoinder talk`: recordings as the caller, one turn a file, and where the time of each answer went."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.markup import escape

from pipeline.audio import Audio
from pipeline.config import Settings
from pipeline.service import CannotStart, Service
from pipeline.telemetry.tracing import TracingUnavailable
from web.commands.recordings import (
    HOW_SAVED,
    Recordings,
    UnusableRecording,
    check_destination,
    read_recording,
    write_recording,
)
from web.options import with_settings
from web.output import clear_errors, console, errors, print_json
from web.server import CannotListen, Server
from web.talk_client import WIRE_RATE, TalkError, TalkTurn, talking
from web.waterfall import waterfall

_GAP_SECONDS = 0.5

Url = Annotated[
    str | None, typer.Option(help="A running server, ws://HOST:PORT; else one is started for this.")
]
Json = Annotated[bool, typer.Option("--json", help="For programs.")]
Save = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help=f"Write the agent's answers to this file, {HOW_SAVED}."),
]


_EXPECTED = (
    UnusableRecording,
    TalkError,
    CannotListen,
    CannotStart,
    TracingUnavailable,
)


@with_settings
def talk(
    settings: Settings,
    files: Recordings,
    url: Url = None,
    as_json: Json = False,
    save: Save = None,
) -> None:
    with clear_errors(*_EXPECTED):
        if save is not None:
            check_destination(save, files)
        recordings = [(file, read_recording(file)) for file in files]
        turns: list[TalkTurn] = []
        try:
            asyncio.run(_talk(settings, url, recordings, turns, quiet=as_json))
        finally:  # what was answered until it failed is not lost with the rest
            if save is not None and turns:
                _save(save, turns)
        if as_json:
            print_json({"turns": [turn.as_dict() for turn in turns]})


async def _talk(
    settings: Settings,
    url: str | None,
    recordings: list[tuple[Path, Audio]],
    turns: list[TalkTurn],
    *,
    quiet: bool,
) -> None:
    """Speak the recordings, and add each answered turn to `turns` at once."""
    token = settings.auth_token.get_secret_value() if settings.auth_token else None
    async with contextlib.AsyncExitStack() as stack:
        agent = None
        if url is None:
            url = await stack.enter_async_context(_own_server(settings))
        elif settings.origin("agent") != "default":
            agent = settings.agent
        client = await stack.enter_async_context(talking(url, token=token, agent=agent))
        await client.greeting()
        for file, recording in recordings:
            try:
                with errors.status(f"Speaking {escape(str(file))}, {len(recording) / WIRE_RATE:.1f} s"):
                    answered = await client.say(recording)
            except TalkError as error:
                raise TalkError(f"{file}: {error}") from None
            turns += answered
            if not quiet:
                for turn in answered:
                    _show(turn)


@contextlib.asynccontextmanager
async def _own_server(settings: Settings) -> AsyncIterator[str]:
    """The address of a server that lives as long as the context: the real service behind a real socket."""
    server = Server(settings.model_copy(update={"host": "127.0.0.1", "port": 0, "audiosocket_port": 0}))
    with errors.status("Starting") as status:
        service = await Service.start(settings, status.update)
    await server.start()
    server.open(service)
    try:
        yield server.address
    finally:
        await server.stop()


def _show(turn: TalkTurn) -> None:
    console.print(f"[bold]You[/]    {escape(turn.record['caller_text'])}", highlight=False)
    console.print(f"[bold]Agent[/]  {escape(turn.record['reply_text'])}", highlight=False)
    if turn.record["heard_text"] != turn.record["reply_text"]:
        console.print(f"[bold]Heard[/]  {escape(turn.record['heard_text'])}", highlight=False)
    console.print(waterfall(turn.record["marks"], turn.record["durations"]))
    console.print()


def _save(file: Path, turns: list[TalkTurn]) -> None:
    """All answers, with a short silence between them."""
    gap = np.zeros(int(_GAP_SECONDS * WIRE_RATE), np.float32)
    pieces = [piece for turn in turns for piece in (turn.audio, gap)][:-1]
    write_recording(file, np.concatenate(pieces), WIRE_RATE)
