"""A service whose calls do exactly what a test says, and a server on it over a real socket."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeVar

import numpy as np
from websockets.asyncio.client import ClientConnection, connect

from pipeline import events
from pipeline.agent import Agent, AgentError
from pipeline.config import Settings
from pipeline.events import CallEnded, CallEvent, Peer, PeerGone
from pipeline.service import CallsBusy, RunningCalls
from tests.machine import PATIENCE
from web.server import Server

T = TypeVar("T")


def on_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """An async test as pytest runs it; a task that it leaves behind fails it."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        async def whole() -> None:
            await test(*arguments, **named)
            left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            assert not left, f"tasks left running: {left}"

        asyncio.run(whole())

    return run


class ScriptedCall:
    """Keeps what the front end told it; `say` sends events to the peer as a running call would."""

    def __init__(self, service: ScriptedService, peer: Peer, agent: str | None) -> None:
        self.id = f"call{len(service.opened)}"
        self.agent = Agent(name=agent or "receptionist", persona="Be brief.", greeting="Hello.")
        self.peer = peer
        self.told: list[tuple[Any, ...]] = []
        self.heard = np.zeros(0, np.float32)
        self.end_reason: str | None = None
        self.over = False
        self.said: int | None = 1
        """What `respond` finds: the number of a turn, or nothing."""
        self.answering: int | None = None
        self.active_reply: str | None = None
        self._news = asyncio.Event()
        self._ended = asyncio.Event()

    async def run(self) -> None:
        try:
            await self._ended.wait()
            with contextlib.suppress(PeerGone):
                await self.peer.send(CallEnded(1, 1, self.end_reason or ""))
        finally:
            self.over = True
            self._note("over")

    def hear(self, audio: np.ndarray) -> None:
        self.heard = np.concatenate([self.heard, audio])
        self._note("hear")

    def playback(self, reply_id: str, played_ms: float) -> None:
        self._note("playback", reply_id, played_ms)

    def truncate(self, reply_id: str, played_ms: float) -> None:
        self._note("truncate", reply_id, played_ms)

    def cancel_reply(self) -> None:
        self._note("cancel_reply")

    def respond(self) -> asyncio.Future[int | None]:
        self._note("respond", len(self.heard))
        return _done(self.said)

    def say_text(self, text: str) -> asyncio.Future[None]:
        self._note("say_text", text)
        return _done(None)

    def hang_up(self, reason: str = "hang_up") -> None:
        if self.end_reason is None:
            self.end_reason = reason
            self._ended.set()

    async def say(self, *said: CallEvent) -> None:
        for event in said:
            if isinstance(event, events.ReplyStarted):
                self.answering, self.active_reply = event.turn, event.reply_id
            elif isinstance(event, events.ReplyDone):
                self.answering = self.active_reply = None
            await self.peer.send(event)

    async def until_told(self, *what: Any) -> tuple[Any, ...]:
        """Wait until the front end has told it something that begins with these."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for one in self.told:
                    if one[: len(what)] == what:
                        return one
                self._news.clear()
                await self._news.wait()

    async def until_heard(self, seconds: float) -> None:
        """Wait until the caller has sent that much audio since the call began."""
        async with asyncio.timeout(PATIENCE):
            while len(self.heard) < seconds * 16_000:
                self._news.clear()
                await self._news.wait()

    def _note(self, *what: Any) -> None:
        self.told.append(what)
        self._news.set()


def _done(result: T) -> asyncio.Future[T]:
    done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    done.set_result(result)
    return done


class ScriptedService:
    """Opens scripted calls."""

    ready = True

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.running = RunningCalls()
        self.opened: list[ScriptedCall] = []
        self._opened = asyncio.Event()
        self.listeners: list[Callable[[dict[str, Any]], None]] = []
        self.closed = False

    @contextlib.contextmanager
    def line(self, peer: Peer, *, agent: str | None = None, **_: Any) -> Iterator[ScriptedCall]:
        if len(self.running) >= self.settings.max_calls:
            raise CallsBusy(f"all {self.settings.max_calls} lines are busy (max_calls)")
        if agent not in (None, "receptionist", "support"):
            raise AgentError(f"there is no agent {agent!r}; there are: receptionist, support")
        call = ScriptedCall(self, peer, agent)
        self.opened.append(call)
        self._opened.set()
        with self.running.counted(call):  # type: ignore[arg-type]
            yield call

    async def first_call(self) -> ScriptedCall:
        """Wait until somebody calls."""
        await asyncio.wait_for(self._opened.wait(), PATIENCE)
        return self.opened[0]

    async def close(self) -> None:
        self.closed = True


class Client:
    """One end of the realtime socket, in a test's words."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def send(self, kind: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": kind, **fields}))

    async def append(self, pcm: bytes) -> None:
        await self.send("input_audio_buffer.append", audio=base64.b64encode(pcm).decode())

    async def receive(self, kind: str | None = None) -> dict[str, Any]:
        """The next event, or the next of a kind."""
        async with asyncio.timeout(PATIENCE):
            while True:
                event: dict[str, Any] = json.loads(await self.socket.recv())
                if kind in (None, event["type"]):
                    return event

    async def error(self) -> dict[str, Any]:
        error: dict[str, Any] = (await self.receive("error"))["error"]
        return error


@contextlib.asynccontextmanager
async def serving(**changes: Any) -> AsyncIterator[tuple[Server, ScriptedService]]:
    """A server on a free port whose service is scripted."""
    settings = Settings(**{"port": 0} | changes)
    server = Server(settings)
    service = ScriptedService(settings)
    await server.start()
    server.open(service)  # type: ignore[arg-type]
    try:
        yield server, service
    finally:
        await server.stop()


@contextlib.asynccontextmanager
async def calling(server: Server, query: str = "", **options: Any) -> AsyncIterator[Client]:
    """A client whose socket is open."""
    address = f"ws://127.0.0.1:{server.port}/v1/realtime{query}"
    async with connect(address, proxy=None, **options) as socket:
        yield Client(socket)


def spoken_reply(turn: int = 1, reply_id: str = "r1", rate: int = 24_000) -> Iterator[CallEvent]:
    """The events of one whole answer of 80 ms."""
    yield events.ReplyStarted(turn, 1, reply_id)
    yield events.ReplyText(turn, 1, reply_id, "Yes.")
    for offset in (0.0, 40.0):
        samples = np.full(rate // 25, 0.25, np.float32)
        yield events.ReplyAudio(turn, 1, reply_id, samples, rate, offset)
    yield events.ReplyDone(turn, 1, reply_id, "completed", "Yes.", "Yes.")
