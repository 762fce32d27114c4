"""Under which names the server shows its pages and numbers to those who need no token."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from pipeline.config import load
from tests.web.scripted import on_loop, serving
from tests.web.test_server import TOKEN, fetch
from web.server import CannotListen, Server


@on_loop
async def test_nothing_is_read_under_a_name_that_is_made_to_resolve_to_us() -> None:
    async with serving(public_url="https://voice.example.com", twilio_auth_token="secret") as (server, _):
        for path in ("/", "/app.js", "/metrics"):
            refused = await fetch(server, path, Host=f"evil.example:{server.port}")
            assert refused.status_code == 403
            assert "set public_url = https://evil.example" in refused.text
            assert (await fetch(server, path, Host="voice.example.com")).status_code == 200
            assert (await fetch(server, path)).status_code == 200
        for path in ("/healthz", "/readyz"):
            assert (await fetch(server, path, Host="evil.example")).status_code == 200
        webhook = await fetch(server, "/phone/twilio/voice", Host="evil.example")
        assert "signature" in webhook.text  # and by nothing else
    async with serving(auth_token=TOKEN) as (server, _):
        assert (await fetch(server, "/", Host="any.example")).status_code == 200
    async with serving(allow_unauthenticated=True) as (server, _):
        assert (await fetch(server, "/metrics", Host="any.example")).status_code == 200


@pytest.mark.parametrize("host", ["[::1]", "0:0:0:0:0:0:0:1", "127.0.0.2", "::ffff:127.0.0.1", "LOCALHOST"])
def test_the_page_is_at_the_address_that_is_printed_for_any_spelling_of_this_machine(host: str) -> None:
    settings = load({"host": host, "port": 0})

    async def run() -> None:
        server = Server(settings)
        try:
            await server.start()
        except CannotListen:
            if ":" in settings.host:
                pytest.skip("this machine has no IPv6")
            raise
        try:
            async with httpx.AsyncClient(trust_env=False) as browser:
                page = await browser.get(server.address)
            assert page.status_code == 200
            assert "<html" in page.text
        finally:
            await server.stop()

    asyncio.run(run())
