"""Under which names the server shows its pages and numbers to those who need no token."""

from __future__ import annotations

from tests.web.scripted import on_loop, serving
from tests.web.test_server import TOKEN, fetch


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
