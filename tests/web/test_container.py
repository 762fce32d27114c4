"""The container's health check, as it stands in the Dockerfile, against a running server."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from pipeline.config import Settings
from tests.web.scripted import on_loop, serving

DOCKERFILE = Path(__file__).parents[2] / "Dockerfile"


async def health_check(port: int) -> int:
    """The exit status of the check in a container that was told to listen on `port`."""
    _, _, check = DOCKERFILE.read_text("utf-8").partition("HEALTHCHECK ")
    _, *arguments = json.loads(check.partition("CMD ")[2].partition("\n")[0])
    environment = {**os.environ, "REJOINDER_PORT": str(port), "http_proxy": "http://127.0.0.1:9"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, env=environment, stderr=asyncio.subprocess.DEVNULL
    )
    return await process.wait()


@on_loop
async def test_the_health_check_asks_on_the_port_that_is_set() -> None:
    async with serving() as (server, _):
        assert await health_check(server.port) == 0
        port = server.port
    assert await health_check(port) == 1


def test_without_a_port_it_is_the_settings_own() -> None:
    assert f"or {Settings().port}" in DOCKERFILE.read_text("utf-8")
