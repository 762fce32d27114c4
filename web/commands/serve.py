"""`rejoinder serve`: the page, the realtime socket and the phone bridge, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import signal

from pipeline.config import Settings
from pipeline.service import CannotStart, Service
from pipeline.telemetry.tracing import TracingUnavailable
from web.options import with_settings
from web.output import clear_errors, errors
from web.server import CannotListen, Server


@with_settings
def serve(settings: Settings) -> None:
    """Listen at once, load the models, take calls; Ctrl-C or SIGTERM ends the calls and stops."""
    with clear_errors(CannotListen, CannotStart, TracingUnavailable):
        asyncio.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    server = Server(settings)
    await server.start()
    stopping = _stop_signals()
    try:
        service = await _load(settings, stopping)
        if service is None:
            return
        server.open(service)
        errors.print(f"Open [bold]{server.address}[/] and press the button. Ctrl-C stops.", highlight=False)
        await stopping.wait()
        errors.print("Ending the calls …")
    finally:
        await server.stop()


def _stop_signals() -> asyncio.Event:
    """An event that the first Ctrl-C or SIGTERM sets; a second one ends the process at once."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        stopping.set()
        for number in numbers:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, stop)
    return stopping


async def _load(settings: Settings, stopping: asyncio.Event) -> Service | None:
    """The service, or None when it was told to stop meanwhile."""
    with errors.status("Starting") as status:
        loading = asyncio.create_task(Service.start(settings, status.update))
        told = asyncio.create_task(stopping.wait())
        await asyncio.wait({loading, told}, return_when=asyncio.FIRST_COMPLETED)
        told.cancel()
        if not loading.done():
            status.update("Stopping when the models are loaded; Ctrl-C again stops at once")
            loading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await loading
            return None
        return await loading
