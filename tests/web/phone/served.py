"""The phone bridge on a real socket, with settings of the test's own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from multidict import CIMultiDict
from pydantic import SecretStr

from pipeline.agent import Agent
from pipeline.stages import Stages
from tests.pipeline.fakes import (
    QUIET,
    Detector,
    InlineWorkers,
    LevelVad,
    Parrot,
    Script,
    ScriptedRecogniser,
    SlowReader,
)
from tests.web.phone.scene import FakeService
from web.listener import Listener
from web.phone.mounting import mount
from web.routes import Request, Routes, SocketHandler
from web.sockets import Socket
from web.switchboard import Switchboard


@dataclass(frozen=True)
class PhoneTestSettings:
    """What `web.phone.settings.PhoneSettings` asks for, with nothing set."""

    host: str = "127.0.0.1"
    send_timeout_seconds: float = 5.0
    public_url: str = ""
    phone_unsigned: bool = False
    mask_caller_numbers: bool = False
    twilio_auth_token: SecretStr | None = None
    twilio_shared_key: SecretStr | None = None
    telnyx_public_key: str = ""
    telnyx_stream_token: SecretStr | None = None
    telnyx_api_key: SecretStr | None = None
    plivo_auth_id: str = ""
    plivo_auth_token: SecretStr | None = None
    vonage_signature_secret: SecretStr | None = None
    vonage_application_id: str = ""
    vonage_private_key: Path | None = None
    asterisk_secret: SecretStr | None = None
    audiosocket_port: int = 0


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
async def serving(settings: PhoneTestSettings, *, recogniser: Any = None) -> AsyncIterator[Served]:
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
