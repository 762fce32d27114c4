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
POLL_SECONDS = 0.05
COMMAND = [sys.executable, "-c", "from web.cli import run; run()", "serve"]
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


async def until_healthy(port: int) -> None:
    """Until it listens: nothing is shown that early, so it is asked again and again."""
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client, asyncio.timeout(PATIENCE):
        while True:
            with contextlib.suppress(httpx.TransportError):
                if (await client.get(f"http://127.0.0.1:{port}/healthz")).status_code == 200:
                    return
            await asyncio.sleep(POLL_SECONDS)


async def shown_until(process: asyncio.subprocess.Process, words: str) -> str:
    """What the command shows, up to the line with these words."""
    assert process.stdout is not None
    shown = ""
    async with asyncio.timeout(PATIENCE):
        while words not in shown:
            line = await process.stdout.readline()
            assert line, f"it ended and showed: {shown}"
            shown += line.decode()
    return shown


def test_it_serves_and_ends_its_calls_on_sigterm(tmp_path: Path) -> None:
    async def run() -> None:
        port = free_port()
        async with serving(port, tmp_path / "latency.db") as process:
            shown = await shown_until(process, f"Open http://127.0.0.1:{port}/")
            async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
                assert (await client.get(f"http://127.0.0.1:{port}/readyz")).status_code == 200
            async with connect(f"ws://127.0.0.1:{port}/v1/realtime", proxy=None) as call:
                assert json.loads(await call.recv())["type"] == "session.created"
                process.send_signal(signal.SIGTERM)
                async with asyncio.timeout(PATIENCE):
                    events = [json.loads(message) async for message in call]
                assert events[-1]["type"] == "rejoinder.call.ended"
                assert events[-1]["reason"] == "shutdown"
                assert call.close_code == 1001
            output, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
            shown += output.decode()
            assert process.returncode == 0, shown
            assert "Traceback" not in shown

    asyncio.run(run())


def test_it_stops_while_it_loads(tmp_path: Path) -> None:
    async def run() -> None:
        port = free_port()
        async with serving(port, tmp_path / "latency.db") as process:
            await until_healthy(port)
            process.send_signal(signal.SIGINT)
            output, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
            assert process.returncode == 0, output.decode()
            assert "Traceback" not in output.decode()

    asyncio.run(run())
