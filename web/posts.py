"""HTTP POST on the port of the websockets: carriers' webhooks post forms.

The websockets library reads an opening request without a body, and drops a connection whose request has one.
So a body is taken off the connection before the library sees the request.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

from websockets.asyncio.server import ServerConnection

MOST_BODY = 64 * 1024
"""Bytes. Carriers' forms have one or two thousand."""

_MOST_HEAD = 16 * 1024
"""Bytes of a request without an end of its headers; they are left to the library's own limits then."""

_METHOD = b"POST "
_END_OF_HEAD = b"\r\n\r\n"
_ABOUT_THE_BODY = re.compile(rb"(content-length|transfer-encoding)[ \t]*:[ \t]*(.*)", re.IGNORECASE)
_COUNT = re.compile(rb"\d{1,9}")


class PostConnection(ServerConnection):
    """A connection of the server's whose request may be a POST with a body.

    `body`: what was posted. `refused`: why it was not read, as the status to answer with. Both hold once
    there is a request.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.body = b""
        self.refused: HTTPStatus | None = None
        self._held: bytearray | None = bytearray()  # None once the request has been passed on
        self._awaited = 0

    def data_received(self, data: bytes) -> None:
        """Called by the transport."""
        if self._held is None:
            super().data_received(data)
            return
        self._held += data
        if len(self._held) < self._awaited:
            return
        request = self._without_body(bytes(self._held))
        if request is not None:
            self._held = None
            super().data_received(request)

    def _without_body(self, received: bytes) -> bytes | None:
        """What the library is to read; None while more must come."""
        if not received.startswith(_METHOD[: len(received)]):
            return received
        head, end, body = received.partition(_END_OF_HEAD)
        if not end:
            return received if len(received) > _MOST_HEAD else None
        lines = [(line, _ABOUT_THE_BODY.fullmatch(line)) for line in head.split(b"\r\n")]
        length = self._length([about.groups() for _, about in lines if about])
        if len(body) < length:
            self._awaited = len(received) - len(body) + length
            return None
        self.body = body[:length]
        return b"\r\n".join(line for line, about in lines if not about) + _END_OF_HEAD

    def _length(self, told: list[tuple[bytes, ...]]) -> int:
        """Bytes of body to wait for; none when the request is refused.

        What is told twice could be read in two ways, by us and by a proxy.
        """
        values = {name.lower(): value.strip() for name, value in told}
        length = values.get(b"content-length", b"0")
        if len(values) < len(told) or not _COUNT.fullmatch(length):
            self.refused = HTTPStatus.BAD_REQUEST
        elif b"transfer-encoding" in values:
            self.refused = HTTPStatus.LENGTH_REQUIRED
        elif int(length) > MOST_BODY:
            self.refused = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        else:
            return int(length)
        return 0
