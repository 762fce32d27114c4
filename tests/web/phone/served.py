"""The phone bridge on a real socket, with settings of the test's own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from multidict import CIMultiDict

from fixtures.fakes import (
    QUIET,
    Detector,
    InlineWorkers,
    LevelVad,
    Parrot,
    Script,
    ScriptedRecogniser,
    SlowReader,
)
from fixtures.phone_scene import FakeService
from pipeline.agent import Agent
from pipeline.config import Settings
from pipeline.stages import Stages
from web.listener import Listener
from web.phone.mounting import mount
from web.routes import Request, Routes, SocketHandler
from web.sockets import Socket
from web.switchboard import Switchboard


def phone_settings(**changes: Any) -> Settings:
    """Defaults and these; callers' numbers are shown."""
    return Settings(**{"mask_caller_numbers": False} | changes)


@dataclass
class Served:
    """A server on a free port. `over`: a connection has been served to its end."""

    port: int
    service: FakeService
    switchboard: Switchboard
    over: asyncio.Event

    def address(self, path: str) -> str:
        return f"ws://127.0.0.1:{self.port}{path}"


def greeting_service(recogniser: Any = None) -> FakeService:
    """Calls in which the agent greets."""
    stages = Stages(
        workers=InlineWorkers(),  # type: ignore[arg-type]
        vad=LevelVad(),
        recogniser=recogniser or ScriptedRecogniser(Script(), lambda: asyncio.get_running_loop().time()),
        end_of_turn=Detector(),
        language=Parrot(),
        voice=SlowReader(),
    )
    return FakeService(stages, Agent(name="test", persona="Be brief.", greeting="Hello.", silence=QUIET))


class _WatchedRoutes(Routes):
    """`over`: a socket has been served to its end."""

    def __init__(self) -> None:
        super().__init__()
        self.over = asyncio.Event()

    def socket(self, path: str, handler: SocketHandler, **options: Any) -> None:
        async def watched(socket: Socket, request: Request) -> None:
            await handler(socket, request)
            self.over.set()

        super().socket(path, watched, **options)


@contextlib.asynccontextmanager
async def serving(settings: Settings, *, recogniser: Any = None) -> AsyncIterator[Served]:
    routes, switchboard, service = _WatchedRoutes(), Switchboard(), greeting_service(recogniser)
    switchboard.service = service  # type: ignore[assignment]
    phones = mount(routes, switchboard, settings)
    await phones.start()
    listener = Listener(routes, max_message_bytes=1 << 20, send_timeout=settings.send_timeout_seconds)
    port = await listener.start(settings.host, 0)
    try:
        yield Served(port, service, switchboard, routes.over)
        await switchboard.hang_up_all(5)
    finally:
        await listener.stop()
    await phones.stop(5)


def request(path: str, host: str = "agent.example.com", **headers: str) -> Request:
    """An opening request; header names with underscores for dashes."""
    all_headers = {"Host": host, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return Request(path, CIMultiDict(all_headers))
