"""The port: HTTP and websockets by aiohttp's server, with limits on what a client may hold on to."""

from __future__ import annotations

import asyncio
import logging
import sys
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from aiohttp import web
from multidict import CIMultiDict

from web.routes import Request, Response, Routes, SocketRoute, respond_text
from web.sockets import CLOSE_SECONDS, PING_SECONDS, Socket

log = logging.getLogger("rejoinder.web.socket")
log.setLevel(logging.WARNING)  # every connection's opening and closing is nothing to report

MOST_BODY = 64 * 1024
"""Bytes. Carriers' forms have one or two thousand."""

HEADER_SECONDS = 10.0
"""From a connection's opening to the end of its first request's headers."""

KEEP_ALIVE_SECONDS = 75.0
"""From an answer to the end of the next request's headers. Longer than the usual minute of a proxy, so that
the proxy is the one that closes: a request may be lost otherwise."""

REQUEST_SECONDS = 10.0
"""From the end of the headers until the body is there and the answer has been taken."""

MOST_UNFINISHED = 256
"""Connections that are no sockets yet. A request takes milliseconds, so of more the oldest is cut off: who
opens connections and does not use them displaces their own."""

_LINGER_SECONDS = 2.0
"""How long what is still sent after a refusal is read, so that the refusal arrives."""

_WRITE_BUFFER = 32 * 1024
"""Bytes that wait for a client; with more, `Socket.send` waits too."""

_NORMAL = 1000
_GOING_AWAY = 1001
_INTERNAL_ERROR = 1011


class _Connection(web.RequestHandler):
    """aiohttp's side of one connection, counted while it is unfinished.

    `wire`: the transport, which aiohttp forgets before the last bytes are out. `writable`: set while less
    waits to be sent than its limit, and once nothing can be sent any more.
    """

    wire: asyncio.Transport
    _headers_due: asyncio.TimerHandle

    def __init__(self, manager: web.Server, unfinished: dict[_Connection, None], **options: Any) -> None:
        super().__init__(manager, **options)
        self.writable = asyncio.Event()
        self.writable.set()
        self._unfinished = unfinished

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(transport, asyncio.Transport)
        transport.set_write_buffer_limits(high=_WRITE_BUFFER)
        self.wire = transport
        self._headers_due = asyncio.get_running_loop().call_later(HEADER_SECONDS, transport.abort)
        self._unfinished[self] = None
        if len(self._unfinished) > MOST_UNFINISHED:
            oldest = next(iter(self._unfinished))
            oldest.finish()
            oldest.wire.abort()

    def begin(self) -> None:
        """It brought a request: all others are older."""
        self._headers_due.cancel()
        if self in self._unfinished:
            del self._unfinished[self]
            self._unfinished[self] = None

    def finish(self) -> None:
        """It is a socket now, or closed."""
        self._unfinished.pop(self, None)

    def connection_lost(self, exc: BaseException | None) -> None:
        self.finish()
        self._headers_due.cancel()
        self.writable.set()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self.writable.clear()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.writable.set()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """What is no HTTP, or a fault of ours, is answered without telling about the machine."""
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            log.error("a request failed", exc_info=exc)
        response = _written(_refuse(HTTPStatus(status)))
        response.force_close()
        return response


class Listener:
    """Answers by `routes`, from `start` to `stop`."""

    def __init__(self, routes: Routes, *, max_message_bytes: int, send_timeout: float) -> None:
        """`max_message_bytes`: the largest message on a socket. `send_timeout`: see `Socket`."""
        self._routes = routes
        self._max_message_bytes = max_message_bytes
        self._send_timeout = send_timeout
        self._unfinished: dict[_Connection, None] = {}
        self._sockets: set[Socket] = set()
        self._http: web.Server | None = None
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; gives the port, for where any free one (0) was asked for. Raises OSError."""
        loop = asyncio.get_running_loop()
        http = web.Server(self._handle, request_factory=_request_of)

        def connection() -> _Connection:
            return _Connection(
                http,
                self._unfinished,
                loop=loop,
                keepalive_timeout=KEEP_ALIVE_SECONDS,
                lingering_time=_LINGER_SECONDS,
                auto_decompress=False,  # signatures are over what was sent
                access_log=None,
                logger=log,
            )

        self._server = await loop.create_server(connection, host, port)
        self._http = http
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Close the sockets that are left, and then every connection."""
        if self._server is None or self._http is None:
            return
        self._server.close()
        await asyncio.gather(*(socket.close(_GOING_AWAY, "shutdown") for socket in self._sockets))
        self._http.pre_shutdown()
        connections = [one for one in self._http.connections if isinstance(one, _Connection)]
        await self._http.shutdown(CLOSE_SECONDS)
        for connection in connections:
            connection.wire.abort()
        await self._server.wait_closed()

    async def _handle(self, asked: web.BaseRequest) -> web.StreamResponse:
        connection = asked.protocol
        assert isinstance(connection, _Connection)
        connection.begin()
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                request, answer = await self._answer(asked)
                if isinstance(answer, Response):
                    response = await _send(asked, answer)
                    await connection.writable.wait()
                    return response
                socket_response = await self._open(asked, answer)
        except web.HTTPBadRequest as bad:
            return await _send(asked, respond_text(bad.text or bad.reason, status=HTTPStatus.BAD_REQUEST))
        except (TimeoutError, ConnectionError):  # too slow, or gone
            connection.wire.abort()
            return web.Response()  # which cannot be sent
        connection.finish()
        socket = Socket(
            socket_response, connection.wire, connection.writable, send_timeout=self._send_timeout
        )
        await self._serve(socket, answer, request)
        return socket_response

    async def _answer(self, asked: web.BaseRequest) -> tuple[Request, Response | SocketRoute]:
        path = "/" + _as_written(asked.raw_path).lstrip("/")  # proxies that take off a prefix may leave two
        headers = CIMultiDict((name, _as_written(value)) for name, value in asked.headers.items())
        request = Request(path, headers, asked.method)
        try:
            request = replace(request, body=await asked.read())
        except web.HTTPRequestEntityTooLarge:
            return request, _refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        except web.RequestPayloadError:
            return request, _refuse(HTTPStatus.BAD_REQUEST)
        return request, await self._routes.answer(request)

    async def _open(self, asked: web.BaseRequest, route: SocketRoute) -> web.WebSocketResponse:
        """The rest of the handshake. Only the route's own subprotocols are chosen from what a client offers,
        so a token among that is never echoed. Raises web.HTTPBadRequest."""
        response = web.WebSocketResponse(
            protocols=route.protocols,
            compress=False,  # base64 of noise: it costs a core and saves nothing
            autoping=False,
            heartbeat=PING_SECONDS,
            timeout=CLOSE_SECONDS,
            max_msg_size=self._max_message_bytes + 1,  # aiohttp refuses from here on
            writer_limit=sys.maxsize,  # `Socket` waits itself: see there
        )
        await response.prepare(asked)
        return response

    async def _serve(self, socket: Socket, route: SocketRoute, request: Request) -> None:
        self._sockets.add(socket)
        try:
            await route.handler(socket, request)
        except Exception:
            log.exception("a socket's handler failed")
            await socket.close(_INTERNAL_ERROR, "")
        else:
            await socket.close(_NORMAL, "")
        finally:
            self._sockets.discard(socket)


def _request_of(
    message: Any, payload: Any, protocol: web.RequestHandler, writer: Any, task: asyncio.Task[None]
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=MOST_BODY)


async def _send(asked: web.BaseRequest, answer: Response) -> web.StreamResponse:
    response = _written(answer)
    await response.prepare(asked)
    await response.write_eof()
    return response


def _refuse(status: HTTPStatus) -> Response:
    return respond_text(status.phrase, status=status)


def _written(answer: Response) -> web.Response:
    headers = {"Server": "rejoinder", **answer.headers}  # aiohttp would tell its version, and Python's
    return web.Response(body=answer.body, status=answer.status, headers=headers)


def _as_written(value: str) -> str:
    """What is UTF-8, as most clients write, aiohttp reads so, and keeps other bytes as surrogates; those are
    Latin-1, as browsers write."""
    sent = value.encode("utf-8", "surrogateescape")
    try:
        return sent.decode()
    except UnicodeDecodeError:
        return sent.decode("latin-1")
