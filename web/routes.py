"""Which path answers what: a small table of pages, webhooks and sockets, with the requests and answers."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from multidict import CIMultiDict, MultiMapping

from web.sockets import Socket

log = logging.getLogger("rejoinder.web")


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `path`: with its query, as it was sent. `body`: what was posted, as it was sent."""

    path: str
    headers: MultiMapping[str] = field(default_factory=CIMultiDict)
    method: str = "GET"
    body: bytes = b""

    def all(self, name: str) -> list[str]:
        """A header's values, one for each time it was sent; its name in any case."""
        return list(self.headers.getall(name, []))


@dataclass(frozen=True, slots=True)
class Response:
    """One answer. The server adds what the connection needs: its length, its date."""

    status: HTTPStatus
    headers: dict[str, str]
    body: bytes


PageHandler = Callable[[Request], Awaitable[Response]]
SocketHandler = Callable[[Socket, Request], Awaitable[None]]
Admission = Callable[[Request], Response | None]
"""Looks at a request before anything is done for it; a response refuses it."""

_READING = ("GET", "HEAD")


def respond(
    body: bytes | str,
    content_type: str,
    *,
    status: HTTPStatus = HTTPStatus.OK,
    headers: dict[str, str] | None = None,
) -> Response:
    """An HTTP answer that no cache keeps."""
    fields = {
        "Content-Type": content_type,
        "Cache-Control": "no-cache",
        "X-Content-Type-Options": "nosniff",
        **(headers or {}),
    }
    return Response(status, fields, body.encode() if isinstance(body, str) else body)


def respond_text(
    text: str, *, status: HTTPStatus = HTTPStatus.OK, headers: dict[str, str] | None = None
) -> Response:
    return respond(text + "\n", "text/plain; charset=utf-8", status=status, headers=headers)


def respond_json(
    value: Any, *, status: HTTPStatus = HTTPStatus.OK, headers: dict[str, str] | None = None
) -> Response:
    return respond(json.dumps(value) + "\n", "application/json", status=status, headers=headers)


@dataclass(frozen=True, slots=True)
class SocketRoute:
    """`protocols`: the subprotocols it can speak, if any."""

    handler: SocketHandler
    admit: Admission
    protocols: tuple[str, ...] = ()


class Routes:
    """Exact paths. One may be a page or webhook, a socket, or both: an upgrade request is for the socket."""

    def __init__(self) -> None:
        self._pages: dict[str, PageHandler] = {}
        self._webhooks: dict[str, PageHandler] = {}
        self._sockets: dict[str, SocketRoute] = {}

    def page(self, path: str, handler: PageHandler) -> None:
        """Answer GET and HEAD of `path`."""
        self._pages[path] = handler

    def webhook(self, path: str, handler: PageHandler) -> None:
        """Answer GET, HEAD and POST of `path`."""
        self._webhooks[path] = handler

    def socket(
        self, path: str, handler: SocketHandler, *, admit: Admission, protocols: tuple[str, ...] = ()
    ) -> None:
        """Hand sockets opened at `path` to `handler`, which runs until the connection is done with."""
        self._sockets[path] = SocketRoute(handler, admit, protocols)

    async def answer(self, request: Request) -> Response | SocketRoute:
        """The HTTP answer to a request; a route lets the socket's handshake go on."""
        path = request.path.partition("?")[0]  # as it stands: to a URL parser two slashes begin a host
        upgrade = [value.lower() for value in request.all("Upgrade")] == ["websocket"]
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
            return socket if upgrade and request.method == "GET" else _needs_upgrade()
        handler = webhook or self._pages.get(path)
        if handler is not None:
            return await handler(request)
        if upgrade:
            log.warning("a socket was asked for at %s, where there is none", path)
        return respond_text(f"there is nothing at {path}", status=HTTPStatus.NOT_FOUND)


def _needs_upgrade() -> Response:
    return respond_text(
        "this address takes websockets",
        status=HTTPStatus.UPGRADE_REQUIRED,
        headers={"Upgrade": "websocket"},
    )
