"""Behind a real reverse proxy that takes a prefix off the path: the page, its call, clients and carriers."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import numpy as np
import pytest
import soundfile
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.calls.chromium import chromium
from tests.machine import program
from tests.web.scripted import PATIENCE, on_loop, serving, spoken_reply
from tests.web.test_page import LISTENING, NOTICE, PLAYED, press
from web.talk_client import talking

TOKEN = "sesame-sesame-0123"
USUAL = "location /agent/ { proxy_pass http://127.0.0.1:PORT/; }"
"""nginx itself sends a browser that asks for `/agent` on to `/agent/`."""

DEEP = "location /a/b.c/~d/ { proxy_pass http://127.0.0.1:PORT/; }"
BARE = "location = /agent { proxy_pass http://127.0.0.1:PORT/; }\n" + USUAL
"""`/agent` reaches the page as `/` does."""

SLASHES = "location /agent { proxy_pass http://127.0.0.1:PORT/; }"
"""Easily written instead of the usual: `/agent/app.js` comes here as `//app.js`."""

_CONFIGURATION = """
daemon off;
master_process off;
pid FOLDER/nginx.pid;
error_log FOLDER/error.log;
events {}
http {
  access_log off;
  client_body_temp_path FOLDER/body;
  proxy_temp_path FOLDER/proxy;
  fastcgi_temp_path FOLDER/fastcgi;
  uwsgi_temp_path FOLDER/uwsgi;
  scgi_temp_path FOLDER/scgi;
  server {
    listen 127.0.0.1:OWN;
    proxy_http_version 1.1;
    proxy_set_header Host $http_host;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection "upgrade";
    LOCATIONS
  }
}
"""


@contextlib.asynccontextmanager
async def nginx(port: int, locations: str, folder: Path) -> AsyncIterator[int]:
    """The port of an nginx that passes on to `port` what these locations say, and nothing else."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        own = int(free.getsockname()[1])
    text = _CONFIGURATION.replace("LOCATIONS", locations.replace("PORT", str(port)))
    text = text.replace("FOLDER", str(folder)).replace("OWN", str(own))
    (folder / "nginx.conf").write_text(text)
    command = [program("nginx", "nginx-light"), "-p", str(folder), "-c", "nginx.conf", "-e", "error.log"]
    process = await asyncio.create_subprocess_exec(*command)
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                with contextlib.suppress(ConnectionRefusedError):
                    _, writer = await asyncio.open_connection("127.0.0.1", own)
                    writer.close()
                    break
                assert process.returncode is None, (folder / "error.log").read_text()
                await asyncio.sleep(0.02)
        yield own
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


@pytest.fixture(scope="module")
def microphone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A minute of a tone."""
    file = tmp_path_factory.mktemp("microphone") / "tone.wav"
    tone = 0.3 * np.sin(2 * np.pi * 300 * np.arange(60 * 16_000) / 16_000)
    soundfile.write(file, tone.astype(np.float32), 16_000)
    return file


@pytest.mark.parametrize(
    ("locations", "opened", "shown"),
    [
        (USUAL, "/agent/", "/agent/"),
        (USUAL, "/agent", "/agent/"),
        (DEEP, "/a/b.c/~d/", "/a/b.c/~d/"),
        (BARE, "/agent", "/agent/"),
        (SLASHES, "/agent/", "/agent/"),
        (SLASHES, "/agent", "/agent/"),
        ("location / { proxy_pass http://127.0.0.1:PORT/; }", "/", "/"),
    ],
)
@on_loop
async def test_the_page_is_whole_and_calls(
    microphone: Path, tmp_path: Path, locations: str, opened: str, shown: str
) -> None:
    async with (
        serving(auth_token=TOKEN) as (server, service),
        nginx(server.port, locations, tmp_path) as port,
        chromium(microphone=microphone) as page,
    ):
        await page.open(f"http://127.0.0.1:{port}{opened}?agent=support&token={TOKEN}")
        await page.until(f"location.pathname === '{shown}' && location.search === '?agent=support'")
        await page.until("document.readyState === 'complete'")
        assert await page.evaluate("document.styleSheets[0].cssRules.length") > 10
        assert await page.evaluate("document.querySelector('.brand img').naturalWidth") > 0
        await press(page, "call")
        await page.until(LISTENING)
        call = await service.first_call()
        assert call.agent.name == "support"
        await call.until_heard(1.0)
        assert np.abs(call.heard).max() > 0.1
        await call.say(*spoken_reply(1, "r1"))
        await page.until(f"{PLAYED} >= 80")
        assert not await page.faults()


@on_loop
async def test_the_page_learns_there_why_it_is_refused(microphone: Path, tmp_path: Path) -> None:
    async with (
        serving(auth_token=TOKEN) as (server, _),
        nginx(server.port, USUAL, tmp_path) as port,
        chromium(microphone=microphone) as page,
    ):
        await page.open(f"http://127.0.0.1:{port}/agent/")
        await press(page, "call")
        await page.until(f"{NOTICE}.includes('asks for a token')")


@pytest.mark.parametrize("locations", [USUAL, SLASHES])
@pytest.mark.parametrize("address", ["ws://HOST/agent", "http://HOST/agent/", "HOST/agent/v1/realtime"])
@on_loop
async def test_a_client_calls_by_the_pages_address(tmp_path: Path, locations: str, address: str) -> None:
    async with (
        serving() as (server, service),
        nginx(server.port, locations, tmp_path) as port,
        talking(address.replace("HOST", f"127.0.0.1:{port}"), agent="support"),
    ):
        assert (await service.first_call()).agent.name == "support"


def signed(address: str, form: str = "") -> dict[str, str]:
    """Twilio's signature over the address that it has been given."""
    digest = hmac.digest(b"secret", (address + form).encode(), "sha1")
    return {"X-Twilio-Signature": base64.b64encode(digest).decode()}


@pytest.mark.parametrize("locations", [USUAL, SLASHES])
@pytest.mark.parametrize(
    "public_url", ["https://voice.example.com/agent", "https://voice.example.com/agent/"]
)
@on_loop
async def test_a_carrier_is_led_to_the_stream_and_known_by_its_signature(
    tmp_path: Path, locations: str, public_url: str
) -> None:
    public = "://voice.example.com/agent/phone/twilio"
    async with (
        serving(twilio_auth_token="secret", public_url=public_url) as (server, _),
        nginx(server.port, locations, tmp_path) as port,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        here = f"127.0.0.1:{port}/agent/phone/twilio"
        webhook = f"http://{here}/voice?agent=support"
        headers = signed(f"https{public}/voice?agent=support", "CallSidCA1")
        answer = await client.post(webhook, headers=headers, data={"CallSid": "CA1"})
        assert f'<Stream url="wss{public}">' in answer.text
        assert (await client.post(webhook, headers=headers, data={"CallSid": "CA2"})).status_code == 403
        async with connect(f"ws://{here}", additional_headers=signed(f"wss{public}"), proxy=None):
            pass
        without_prefix = signed("wss://voice.example.com/phone/twilio")
        with pytest.raises(InvalidStatus):
            async with connect(f"ws://{here}", additional_headers=without_prefix, proxy=None):
                pass
