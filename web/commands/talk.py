"""`rejoinder talk`: recordings as the caller, one turn a file, and where the time of each answer went."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

import numpy as np
import soundfile
import typer
from rich.markup import escape

from pipeline.audio import Audio, StreamResampler, mix_to_mono
from pipeline.config import Settings
from pipeline.places import make_private_file
from pipeline.service import CannotStart, Service
from pipeline.telemetry.tracing import TracingUnavailable
from web.commands.output import clear_errors, console, errors, print_json
from web.options import with_settings
from web.server import CannotListen, Server
from web.talk_client import WIRE_RATE, TalkError, Turn, talking
from web.waterfall import waterfall

_GAP_SECONDS = 0.5

Recordings = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="Recordings, one turn each: any format and rate.")
]
Url = Annotated[
    str | None, typer.Option(help="A running server, ws://HOST:PORT; else one is started for this.")
]
Json = Annotated[bool, typer.Option("--json", help="For programs.")]
Save = Annotated[Path | None, typer.Option(help="Write what the agent answered to this WAV file.")]


class UnusableRecording(Exception):
    """A file that cannot be spoken, or cannot be written; the message says which and why."""


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
        recordings = [(file, read_recording(file)) for file in files]
        check_folder(save)
        turns = asyncio.run(_talk(settings, url, recordings, quiet=as_json))
        if as_json:
            print_json({"turns": [turn.as_dict() for turn in turns]})
        if save is not None:
            _save(save, turns)


def check_folder(save: Path | None) -> None:
    """Before a conversation that is to be saved. Raises UnusableRecording."""
    if save is not None and not save.parent.is_dir():
        raise UnusableRecording(f"there is no folder {save.parent}")


def write_recording(file: Path, audio: Audio, rate: int) -> None:
    """Float32 mono as 16-bit PCM, for this user's eyes alone. Raises UnusableRecording."""
    try:
        make_private_file(file)
        soundfile.write(file, audio, rate, subtype="PCM_16")
    except (soundfile.SoundFileError, OSError, TypeError) as error:  # the last: a name that tells no format
        raise UnusableRecording(f"{file} cannot be written: {error}") from None


def read_recording(file: Path) -> Audio:
    """A file as float32 mono at 24 kHz. Raises UnusableRecording."""
    if not file.is_file():
        raise UnusableRecording(f"there is no file {file}")
    try:
        samples, rate = soundfile.read(file, dtype="float32")
    except soundfile.SoundFileError as error:
        raise UnusableRecording(f"{file} is not a recording that can be read: {error}") from None
    if len(samples) == 0:
        raise UnusableRecording(f"{file} is empty")
    resampler = StreamResampler(rate, WIRE_RATE)
    return np.concatenate([resampler.push(mix_to_mono(samples)), resampler.flush()])


async def _talk(
    settings: Settings, url: str | None, recordings: list[tuple[Path, Audio]], *, quiet: bool
) -> list[Turn]:
    token = settings.auth_token.get_secret_value() if settings.auth_token else None
    turns: list[Turn] = []
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
    return turns


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


def _show(turn: Turn) -> None:
    console.print(f"[bold]You[/]    {escape(turn.record['caller_text'])}", highlight=False)
    console.print(f"[bold]Agent[/]  {escape(turn.record['reply_text'])}", highlight=False)
    if turn.record["heard_text"] != turn.record["reply_text"]:
        console.print(f"[bold]Heard[/]  {escape(turn.record['heard_text'])}", highlight=False)
    console.print(waterfall(turn.record["marks"], turn.record["durations"]))
    console.print()


def _save(file: Path, turns: list[Turn]) -> None:
    """All answers, with a short silence between them."""
    gap = np.zeros(int(_GAP_SECONDS * WIRE_RATE), np.float32)
    pieces = [piece for turn in turns for piece in (turn.audio, gap)][:-1]
    write_recording(file, np.concatenate(pieces), WIRE_RATE)
