"""A headless Chromium with a recording as its microphone, driven over the DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect

from tests.machine import program

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--autoplay-policy=no-user-gesture-required",
    "--use-fake-device-for-media-stream",
    "--remote-debugging-port=0",
)
_POLL_SECONDS = 0.1
_WATCH_FOR_FAULTS = """
window.faults = [];
addEventListener("error", (event) => faults.push(event.message));
addEventListener("unhandledrejection", (event) => faults.push(String(event.reason)));
document.addEventListener("securitypolicyviolation", (event) => faults.push(event.violatedDirective));
"""


class Page:
    """The browser's one page."""

    def __init__(self, devtools: ClientConnection) -> None:
        self._devtools = devtools
        self._numbers = itertools.count(1)

    async def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one DevTools command and wait for its result; events in between are dropped."""
        number = next(self._numbers)
        await self._devtools.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(await self._devtools.recv())
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result

    async def watch(self) -> None:
        """Have every document keep its faults: uncaught errors, violations of its own security policy."""
        await self.command("Page.enable")
        await self.command("Page.addScriptToEvaluateOnNewDocument", source=_WATCH_FOR_FAULTS)

    async def faults(self) -> list[str]:
        """Of the document that is open now."""
        found: list[str] = await self.evaluate("window.faults")
        return found

    async def open(self, url: str) -> None:
        await self.command("Page.navigate", url=url)
        await self.until("document.readyState === 'complete'")

    async def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        answer = await self.command(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, condition: str, seconds: float = 10.0) -> None:
        """Wait until a JavaScript expression is truthy; fails with what the page shows then."""
        deadline = asyncio.get_running_loop().time() + seconds
        while not await self.evaluate(f"Boolean({condition})"):
            if asyncio.get_running_loop().time() > deadline:
                shown = await self.evaluate("document.body.innerText")
                raise AssertionError(f"after {seconds} s not {condition}; the page shows:\n{shown}")
            await asyncio.sleep(_POLL_SECONDS)

    async def screenshot(self) -> bytes:
        """What it looks like, as PNG."""
        shot = await self.command("Page.captureScreenshot", format="png")
        return base64.b64decode(shot["data"])


@contextlib.asynccontextmanager
async def chromium(*, microphone: Path | None, allow_microphone: bool = True) -> AsyncIterator[Page]:
    """A fresh browser. `microphone`: a WAV file, played once; None: the machine has no microphone."""
    flags = list(FLAGS)
    if microphone is not None:
        flags.append(f"--use-file-for-fake-audio-capture={microphone}%noloop")
    else:
        flags.remove("--use-fake-device-for-media-stream")
    if allow_microphone:
        flags.append("--use-fake-ui-for-media-stream")
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            program("chromium"),
            *flags,
            f"--user-data-dir={profile}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with connect(await _page_address(Path(profile)), max_size=None, proxy=None) as devtools:
                page = Page(devtools)
                await page.watch()
                yield page
        finally:
            process.terminate()
            await process.wait()


async def _page_address(profile: Path) -> str:
    """The address of the page's DevTools socket, once the browser has told it."""
    port_file = profile / "DevToolsActivePort"
    deadline = asyncio.get_running_loop().time() + 30
    while not (port_file.exists() and port_file.read_text().count("\n")):
        assert asyncio.get_running_loop().time() < deadline, "Chromium did not start"
        await asyncio.sleep(_POLL_SECONDS)
    port = port_file.read_text().splitlines()[0]
    async with httpx.AsyncClient(trust_env=False) as client:
        targets = (await client.get(f"http://127.0.0.1:{port}/json/list")).json()
    address: str = next(t["webSocketDebuggerUrl"] for t in targets if t["type"] == "page")
    return address
