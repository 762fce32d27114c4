"""The phone bridge on a real socket, with settings of the test's own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

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
from pipeline.stages import Stages
from web.phone.mounting import mount
from web.posts import PostConnection
from web.routes import Routes
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


@contextlib.asynccontextmanager
async def serving(settings: PhoneTestSettings, *, recogniser: Any = None) -> AsyncIterator[Served]:
    routes, switchboard, service = Routes(), Switchboard(), greeting_service(recogniser)
    over = asyncio.Event()
    switchboard.service = service  # type: ignore[assignment]
    phones = mount(routes, switchboard, settings)

    async def answer(connection: ServerConnection, request: Request) -> Response | None:
        assert isinstance(connection, PostConnection)
        return await routes.answer(request, connection.body)

    async def handle(connection: ServerConnection) -> None:
        assert connection.request is not None
        socket = routes.socket_at(connection.request)
        assert socket is not None
        await socket.handler(connection)
        over.set()

    await phones.start()
    serving = serve(
        handle, "127.0.0.1", 0, process_request=answer, create_connection=PostConnection, max_size=1 << 20
    )
    async with serving as server:
        yield Served(server.sockets[0].getsockname()[1], service, switchboard, over)
        await switchboard.hang_up_all(5)
    await phones.stop(5)


def request(path: str, host: str = "agent.example.com", **headers: str) -> Request:
    """An opening request; header names with underscores for dashes."""
    all_headers = {"Host": host, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return Request(path, Headers(all_headers))
