"""Which path answers what: a small table of pages and sockets, and the HTTP answers they are made of."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from typing import Any

from websockets.asyncio.server import ServerConnection
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

log = logging.getLogger("rejoinder.web")

PageHandler = Callable[[Request], Awaitable[Response]]
WebhookHandler = Callable[[Request, bytes], Awaitable[Response]]
"""The request, and the body that was posted: empty for GET."""

SocketHandler = Callable[[ServerConnection], Awaitable[None]]
Admission = Callable[[Request], Response | None]
"""Looks at a socket's opening request; a response refuses it."""

_READING = ("GET", "HEAD")


def respond(
    body: bytes | str,
    content_type: str,
    *,
    status: HTTPStatus = HTTPStatus.OK,
    headers: dict[str, str] | None = None,
) -> Response:
    """An HTTP answer that no cache keeps."""
    data = body.encode() if isinstance(body, str) else body
    fields = {
        "Date": formatdate(usegmt=True),
        "Connection": "close",
        "Content-Type": content_type,
        "Content-Length": str(len(data)),
        "Cache-Control": "no-cache",
        "X-Content-Type-Options": "nosniff",
        **(headers or {}),
    }
    return Response(status.value, status.phrase, Headers(fields), data)


def respond_text(
    text: str, *, status: HTTPStatus = HTTPStatus.OK, headers: dict[str, str] | None = None
) -> Response:
    return respond(text + "\n", "text/plain; charset=utf-8", status=status, headers=headers)


def respond_json(
    value: Any, *, status: HTTPStatus = HTTPStatus.OK, headers: dict[str, str] | None = None
) -> Response:
    return respond(json.dumps(value) + "\n", "application/json", status=status, headers=headers)


@dataclass(frozen=True, slots=True)
class Socket:
    """`protocols`: the subprotocols it can speak, if any."""

    handler: SocketHandler
    admit: Admission
    protocols: tuple[str, ...] = ()


class Routes:
    """Exact paths. One may be a page or webhook, a socket, or both: an upgrade request is for the socket."""

    def __init__(self) -> None:
        self._pages: dict[str, PageHandler] = {}
        self._webhooks: dict[str, WebhookHandler] = {}
        self._sockets: dict[str, Socket] = {}

    def page(self, path: str, handler: PageHandler) -> None:
        """Answer GET and HEAD of `path`."""
        self._pages[path] = handler

    def webhook(self, path: str, handler: WebhookHandler) -> None:
        """Answer GET, HEAD and POST of `path`."""
        self._webhooks[path] = handler

    def socket(
        self, path: str, handler: SocketHandler, *, admit: Admission, protocols: tuple[str, ...] = ()
    ) -> None:
        """Hand sockets opened at `path` to `handler`, which runs until the connection is done with."""
        self._sockets[path] = Socket(handler, admit, protocols)

    def socket_at(self, request: Request) -> Socket | None:
        return self._sockets.get(_path(request))

    async def answer(self, request: Request, body: bytes = b"") -> Response | None:
        """The HTTP answer to a request; None lets a socket's handshake go on."""
        path = _path(request)
        upgrade = [value.lower() for value in request.headers.get_all("Upgrade")] == ["websocket"]
        socket = self._sockets.get(path) if upgrade or path not in self._pages else None
        # Before the method: a browser tells a page's origin with POST only, and asks so why it was refused.
        if socket is not None and (refusal := socket.admit(request)) is not None:
            return refusal
        webhook = self._webhooks.get(path)
        allowed = (*_READING, "POST") if webhook else _READING
        if request.method not in allowed:
            message, headers = f"{request.method} is not supported here", {"Allow": ", ".join(allowed)}
            return respond_text(message, status=HTTPStatus.METHOD_NOT_ALLOWED, headers=headers)
        if socket is not None:
            return None if upgrade else _needs_upgrade()
        if webhook is not None:
            response = await webhook(request, body)
        elif (page := self._pages.get(path)) is not None:
            response = await page(request)
        else:
            if upgrade:
                log.warning("a socket was asked for at %s, where there is none", path)
            return respond_text(f"there is nothing at {path}", status=HTTPStatus.NOT_FOUND)
        if request.method == "HEAD":
            response.body = b""
        return response


def _path(request: Request) -> str:
    """Taken as it stands: to a URL parser two slashes begin a host, which may be a wrong one."""
    return request.path.partition("?")[0]


def _needs_upgrade() -> Response:
    return respond_text(
        "this address takes websockets",
        status=HTTPStatus.UPGRADE_REQUIRED,
        headers={"Upgrade": "websocket"},
    )
