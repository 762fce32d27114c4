"""One real server with the real default models, on a real socket, for all tests of whole calls."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipeline.agent import SHIPPED
from pipeline.config import load
from pipeline.service import Service
from pipeline.telemetry.latency_log import LatencyLog
from tests.machine import PATIENCE
from web.server import Server

BRISK = "brisk"
"""The default agent without its greeting, for calls in which nobody looks at it."""


@dataclass(frozen=True)
class LiveServer:
    """`url`: the page's address. `log`: its latency log."""

    url: str
    log: LatencyLog
    service: Service
    loop: asyncio.AbstractEventLoop

    def rows(self) -> list[dict[str, Any]]:
        """All turns of the latency log once no call is running any more."""
        asyncio.run_coroutine_threadsafe(self.service.running.over(), self.loop).result(PATIENCE)
        self.log.flush()
        return self.log.recent()


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """The service as `rejoinder serve` runs it, on a free port of the loopback interface."""
    log_file = tmp_path_factory.mktemp("live") / "latency.db"
    agents = tmp_path_factory.mktemp("agents")
    _write_brisk(agents)
    started: Future[LiveServer] = Future()
    stop = asyncio.Event()

    async def serve() -> None:
        settings = load({"port": 0, "latency_log": log_file, "agents_dir": agents})
        server = Server(settings)
        await server.start()
        service = await Service.start(settings)
        server.open(service)
        loop = asyncio.get_running_loop()
        started.set_result(LiveServer(server.address, service.latency_log, service, loop))
        await stop.wait()
        await server.stop()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            if not started.done():
                started.set_exception(error)
            raise

    thread = threading.Thread(target=run, name="live-server")
    thread.start()
    server = started.result()
    yield server
    server.loop.call_soon_threadsafe(stop.set)
    thread.join()


def _write_brisk(folder: Path) -> None:
    receptionist = (SHIPPED / "receptionist.toml").read_text(encoding="utf-8")
    text = re.sub(r"^(name|greeting) = .*\n", "", receptionist, flags=re.MULTILINE)
    (folder / f"{BRISK}.toml").write_text(text, encoding="utf-8")
