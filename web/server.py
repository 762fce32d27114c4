"""The one server: pages and sockets on one port, from its binding to its orderly end."""

from __future__ import annotations

import asyncio
import errno
from http import HTTPStatus

from pipeline.addresses import in_url
from pipeline.config import Settings
from pipeline.service import Service
from pipeline.telemetry.tracing import Tracing
from web import assets, health, metrics
from web.auth import Gate
from web.listener import Listener
from web.phone import mounting
from web.phone.mounting import Phones
from web.realtime.connection import RealtimeFrontEnd
from web.routes import Request, Response, Routes, respond_text
from web.switchboard import Switchboard

_GRACE_SECONDS = 5.0


class CannotListen(OSError):
    """The address cannot be bound; the message says why and what to do."""


class Server:
    """Listens from `start` on; takes calls from `open` on; `stop` ends both and the service with them."""

    def __init__(self, settings: Settings) -> None:
        """Raises pipeline.telemetry.tracing.TracingUnavailable."""
        self.switchboard = Switchboard()
        self._settings = settings
        token = settings.auth_token.get_secret_value() if settings.auth_token else None
        self.gate = Gate(token, settings.allow_unauthenticated, settings.allowed_origins, settings.public_url)
        self.routes = Routes()
        self._metrics = metrics.Metrics(lambda: self.switchboard.running)
        self._tracing = Tracing.from_environment()
        self.port = settings.port
        """The port it listens on; once started, also when any free one was asked for."""
        self._listener = Listener(
            self.routes,
            max_message_bytes=settings.max_message_bytes,
            send_timeout=settings.send_timeout_seconds,
        )
        self._phones = self._mount()

    async def start(self) -> None:
        """Bind and answer, for telephones on their own port too where one is set. Raises CannotListen."""
        host, port = self._settings.host, self._settings.port
        try:
            self.port = await self._listener.start(host, port)
        except OSError as error:
            raise CannotListen(_why(error, host, port, "--port")) from error
        try:
            await self._phones.start()
        except OSError as error:
            phone_port = self._settings.audiosocket_port
            raise CannotListen(_why(error, host, phone_port, "--audiosocket-port")) from error

    @property
    def address(self) -> str:
        """The page's address, as a browser on this machine opens it."""
        return f"http://{in_url(self._settings.host, self.port)}/"

    def open(self, service: Service) -> None:
        """The models are loaded: take calls, and observe their turns."""
        service.listeners.append(self._metrics.observe)
        if self._tracing is not None:
            service.listeners.append(self._tracing.observe)
        self.switchboard.service = service

    async def stop(self) -> None:
        """End the calls in order, then close what is left."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _GRACE_SECONDS
        await self.switchboard.hang_up_all(_GRACE_SECONDS)
        await self._phones.stop(max(0.0, until - loop.time()))
        await self._listener.stop()
        if self.switchboard.service is not None:
            await self.switchboard.service.close()

    def _mount(self) -> Phones:
        realtime = RealtimeFrontEnd(self.switchboard)
        self.routes.socket("/v1/realtime", realtime.handle, admit=self._admit_client, protocols=("realtime",))
        metrics.mount(
            self.routes,
            self._metrics,
            lambda request: self._admit_reader(request) or self._admit_client(request),
        )
        health.mount(self.routes, self.switchboard)
        assets.mount(self.routes, self._admit_reader)
        return mounting.mount(self.routes, self.switchboard, self._settings)

    def _admit_client(self, request: Request) -> Response | None:
        if not self.gate.trusts_origin(request):
            pages = " and ".join(request.all("Origin"))
            message = f"a page from {pages} may not call here; see allowed_origins"
            return respond_text(message, status=HTTPStatus.FORBIDDEN)
        if not self.gate.knows(request):
            headers = {"WWW-Authenticate": "Bearer"}
            return respond_text("a bearer token is needed", status=HTTPStatus.UNAUTHORIZED, headers=headers)
        return None

    def _admit_reader(self, request: Request) -> Response | None:
        if self.gate.trusts_host(request):
            return None
        host = " and ".join(request.all("Host"))
        message = (
            f"without a token nothing is shown under the name {host}: set public_url = https://{host} "
            "or add that to allowed_origins"
        )
        return respond_text(message, status=HTTPStatus.FORBIDDEN)


def _why(error: OSError, host: str, port: int, option: str) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use: stop what listens there, or choose another with {option}"
    if error.errno == errno.EACCES:
        return f"port {port} needs rights that this user does not have: choose one above 1023 with {option}"
    return f"cannot listen on {host}, port {port}: {error.strerror or error}"
