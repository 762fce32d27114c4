"""`rejoinder call`: a telephone call from a simulated carrier, with recordings as the caller."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.markup import escape
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus, WebSocketException

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
from web.output import clear_errors, console, errors
from web.phone.simulator.call import SimulatedCall
from web.phone.simulator.carriers import SHAPES
from web.phone.simulator.line import Network, SocketLink
from web.phone.simulator.shape import Dialled
from web.server import CannotListen, Server
from web.talk_client import WIRE_RATE

_QUIET_SECONDS = 2.0
"""So long without a sound from the agent, and it is the caller's turn."""

_GREETING_SECONDS = 8.0
_ANSWER_SECONDS = 30.0

Carrier = Annotated[str, typer.Option(help=f"Whose wire to speak: {', '.join(SHAPES)}.")]
Url = Annotated[
    str | None,
    typer.Option(help="A running server with phone_unsigned, ws://HOST:PORT; else one is started for this."),
]
Save = Annotated[
    Path | None, typer.Option(metavar="FILE", help=f"Write what the caller heard to this file, {HOW_SAVED}.")
]
Latency = Annotated[float, typer.Option(min=0, max=2000, help="One way, in milliseconds.")]
Loss = Annotated[float, typer.Option(min=0, max=1, help="Share of the caller's frames that are lost.")]


class CallNotMade(Exception):
    """The call did not come about, or nobody answered; the message says why."""


@dataclass(frozen=True, slots=True)
class HeardAnswer:
    """Seconds from the end of what the caller said to the first sound of the answer, and how long it was."""

    after: float
    seconds: float


@with_settings
def call(
    settings: Settings,
    files: Recordings,
    carrier: Carrier = "twilio",
    url: Url = None,
    save: Save = None,
    latency_ms: Latency = 40.0,
    loss: Loss = 0.0,
) -> None:
    expected = (UnusableRecording, CallNotMade, CannotListen, CannotStart, TracingUnavailable, OSError)
    with clear_errors(*expected):
        if carrier not in SHAPES:
            raise CallNotMade(f"there is no carrier {carrier!r}; there are: {', '.join(SHAPES)}")
        if save is not None:
            check_destination(save, files)
        recordings = [(file, read_recording(file)) for file in files]
        network = Network(latency=latency_ms / 1000, jitter=latency_ms / 4000, loss=loss)
        asyncio.run(_call(settings, carrier, url, recordings, network, save))


async def _call(
    settings: Settings,
    carrier: str,
    url: str | None,
    recordings: list[tuple[Path, Audio]],
    network: Network,
    save: Path | None,
) -> None:
    """Speak the recordings into a call, and save what was heard, silence included, also when it fails."""
    shape = SHAPES[carrier](Dialled(agent=settings.agent if settings.origin("agent") != "default" else ""))
    answered: asyncio.Event | None = None  # another's server does not tell when an answer is over
    async with contextlib.AsyncExitStack() as stack:
        if url is None:
            answered = asyncio.Event()
            url = await stack.enter_async_context(_own_server(settings, answered))
        try:
            socket = await stack.enter_async_context(connect(url.rstrip("/") + shape.path, proxy=None))
        except InvalidStatus as refused:
            reason = bytes(refused.response.body or b"").decode(errors="replace").strip()
            raise CallNotMade(f"the server refused the call: {reason}") from None
        except (
            WebSocketException,
            OSError,
            TimeoutError,
            ValueError,
        ) as error:  # of a port that is none, too
            raise CallNotMade(f"no call to {url}: {error}") from None
        phone = SimulatedCall(shape, SocketLink(socket), network=network)
        running = asyncio.create_task(phone.run())
        try:
            await _converse(phone, recordings, answered)
        finally:
            phone.hang_up()
            await running
            if save is not None and phone.decoded():
                write_recording(save, _everything_heard(phone, shape.encoding.rate), shape.encoding.rate)


async def _converse(
    phone: SimulatedCall, recordings: list[tuple[Path, Audio]], answered: asyncio.Event | None
) -> None:
    with contextlib.suppress(TimeoutError):  # an agent need not greet
        async with asyncio.timeout(_GREETING_SECONDS):
            await phone.until_quiet(_QUIET_SECONDS)
    for file, recording in recordings:
        answer = await _say(phone, recording, answered)
        if answer is None:
            raise CallNotMade(f"{file}: the call ended, or {_ANSWER_SECONDS:g} s passed, without an answer")
        console.print(
            f"{escape(str(file))}: answered after [bold]{answer.after * 1000:.0f} ms[/],"
            f" {answer.seconds:.1f} s long",
            highlight=False,
            soft_wrap=True,
        )


async def _say(phone: SimulatedCall, recording: Audio, answered: asyncio.Event | None) -> HeardAnswer | None:
    """Speak, and hear the answer out. Without `answered` a slow machine's long pause counts as its end."""
    phone.say(_without_silence_after(recording), WIRE_RATE)
    await phone.until_said()
    said, phone.last_audible = phone.now, None
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_ANSWER_SECONDS):
            if answered is not None:
                answered.clear()
                await _either(answered, phone.over)
            await phone.until_quiet(_QUIET_SECONDS)
    times = phone.audible_since(said)
    return HeardAnswer(times[0] - said, times[-1] - times[0]) if times else None


async def _either(*events: asyncio.Event) -> None:
    """Wait for the first of them."""
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()


def _without_silence_after(recording: Audio) -> Audio:
    """Up to the last sample that is heard: the answer is timed from there."""
    loud = np.flatnonzero(np.abs(recording) > 0.01)
    return recording[: loud[-1] + 1] if loud.size else recording


def _everything_heard(phone: SimulatedCall, rate: int) -> Audio:
    """What was played, at its times."""
    frames = phone.decoded()
    end = max(at for at, _ in frames) + 1.0
    heard = np.zeros(round(end * rate), np.float32)
    for at, samples in frames:
        start = round(at * rate)
        heard[start : start + samples.size] = samples
    return heard


@contextlib.asynccontextmanager
async def _own_server(settings: Settings, answered: asyncio.Event) -> AsyncIterator[str]:
    """The address of a server that lives as long as the context; it prints each turn's words and sets
    `answered` when they have been said."""

    def turn_over(row: dict[str, Any]) -> None:
        _show(row)
        answered.set()

    alone = {"host": "127.0.0.1", "port": 0, "audiosocket_port": 0, "phone_unsigned": True}
    server = Server(settings.model_copy(update=alone))
    with errors.status("Starting") as status:
        service = await Service.start(settings, status.update)
    service.listeners.append(turn_over)
    await server.start()
    server.open(service)
    try:
        yield server.address.replace("http:", "ws:")
    finally:
        await server.stop()


def _show(row: dict[str, Any]) -> None:
    for who, text in (("caller", row["caller_text"]), ("agent ", row["heard_text"])):
        console.print(f"  [bold]{who}[/] {escape(text)}", highlight=False, soft_wrap=True)
