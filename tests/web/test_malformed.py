"""Requests whose addresses are none: refused like others, and no failure in the log."""

from __future__ import annotations

import asyncio

import pytest

from tests.web.scripted import on_loop, serving


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("//[", "Host: localhost", 404),
        ("//evil.example/metrics", "Host: localhost", 404),
        ("/v1/realtime", "Host: localhost\r\nOrigin: http://[", 403),
        ("/phone/plivo", "Host: [\r\nX-Plivo-Signature-V3: a\r\nX-Plivo-Signature-V3-Nonce: b", 403),
        ("/phone/telnyx", f"Host: localhost\r\nTelnyx-Timestamp: {'1' * 5000}", 403),
    ],
)
@on_loop
async def test_addresses_that_are_none_are_refused_like_others(
    path: str, headers: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(plivo_auth_token="sesame", telnyx_public_key="bm8=") as (server, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(f"GET {path} HTTP/1.1\r\n{headers}\r\n\r\n".encode())
        assert (await reader.readline()).split()[1] == str(status).encode()
        writer.close()
    assert not [record for record in caplog.records if record.exc_info]
