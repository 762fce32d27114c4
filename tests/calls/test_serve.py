"""`rejoinder serve` as a process: answers while it loads, tells where the page is, ends its calls."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
from websockets.asyncio.client import connect

PATIENCE = 90.0
COMMAND = [sys.executable, "-c", "from web.cli import main; main()", "serve"]
SMALL = ["--llm", "smallest", "--asr-model", "whisper-tiny.en"]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@contextlib.asynccontextmanager
async def serving(port: int, log: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """The command, on this port; ended the hard way if a test fails."""
    process = await asyncio.create_subprocess_exec(
        *[*COMMAND, *SMALL, "--port", str(port), "--latency-log", str(log)],
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def until_answering(port: int, path: str) -> None:
    """Ask until the answer is 200."""
    async with httpx.AsyncClient(trust_env=False) as client, asyncio.timeout(PATIENCE):
        while True:
            with contextlib.suppress(httpx.TransportError):
                if (await client.get(f"http://127.0.0.1:{port}{path}")).status_code == 200:
                    return
            await asyncio.sleep(0.2)


def test_it_serves_and_ends_its_calls_on_sigterm(tmp_path: Path) -> None:
    async def run() -> None:
        port = free_port()
        async with serving(port, tmp_path / "latency.db") as process:
            await until_answering(port, "/readyz")
            async with connect(f"ws://127.0.0.1:{port}/v1/realtime", proxy=None) as call:
                assert json.loads(await call.recv())["type"] == "session.created"
                process.send_signal(signal.SIGTERM)
                async with asyncio.timeout(PATIENCE):
                    events = [json.loads(message) async for message in call]
                assert events[-1]["type"] == "rejoinder.call.ended"
                assert events[-1]["reason"] == "shutdown"
                assert call.close_code == 1001
            output, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
            assert process.returncode == 0, output.decode()
            assert f"http://127.0.0.1:{port}/" in output.decode()
            assert "Traceback" not in output.decode()

    asyncio.run(run())


def test_it_stops_while_it_loads(tmp_path: Path) -> None:
    async def run() -> None:
        port = free_port()
        async with serving(port, tmp_path / "latency.db") as process:
            await until_answering(port, "/healthz")
            process.send_signal(signal.SIGINT)
            output, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
            assert process.returncode == 0, output.decode()
            assert "Traceback" not in output.decode()

    asyncio.run(run())
