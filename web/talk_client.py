"""A caller made of recordings: speaks them over the realtime socket at the pace of speech, and listens."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

import numpy as np
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.typing import Subprotocol

from pipeline.audio import Audio, float_to_pcm16, pcm16_to_float
from web.auth import TOKEN_PROTOCOL
from web.realtime.server_events import caller_item
from web.speaker import Speaker

_socket_log = logging.getLogger("rejoinder.web.talk")
_socket_log.setLevel(logging.WARNING)  # below that the library shows the token

WIRE_RATE = 24_000
_REALTIME = "/v1/realtime"
_FRAME_SECONDS = 0.04
_FRAME = int(WIRE_RATE * _FRAME_SECONDS)
_REPORT_FRAMES = 5
_SETTLE_SECONDS = 0.6
"""Silence after a recording before its turn can count as over: the server hears of speech a little later."""

_NOTHING: Audio = np.zeros(0, np.float32)


class TalkError(Exception):
    """The conversation could not be held; the message says why."""


@dataclass(frozen=True, slots=True)
class TalkTurn:
    """A turn as it was logged. `audio`: the reply as received, float32 mono at 24 kHz."""

    record: dict[str, Any]
    audio: Audio = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """What the caller said, what the agent said, what was heard of it, and the timing in milliseconds."""
        return {
            "caller": self.record["caller_text"],
            "reply": self.record["reply_text"],
            "heard": self.record["heard_text"],
            "marks": self.record["marks"],
            "durations": self.record["durations"],
            "audio_seconds": round(len(self.audio) / WIRE_RATE, 3),
        }


class TalkClient:
    """A call in progress. The microphone is always open: between recordings it sends silence."""

    def __init__(self, socket: ClientConnection) -> None:
        self.turns: list[TalkTurn] = []
        self._socket = socket
        self._speaker = Speaker()
        self._reported = (self._speaker.item, 0.0)
        self._unsent = _NOTHING
        self._silent_frames = 0
        self._speech_open = False
        self._unanswered: set[str] = set()
        self._audio: dict[str, list[Audio]] = {}
        self._replies: dict[int, Audio] = {}
        self._greeted = False
        self._ended: str | None = None
        self._error: str | None = None
        self._last_event = 0.0
        self._news = asyncio.Event()

    async def greeting(self, patience: float = 30.0) -> None:
        """Wait until the agent has said its greeting, if it has one. Raises TalkError."""
        await self._until(lambda: self._greeted, patience, "the agent's greeting did not come to its end")

    async def say(self, recording: Audio, patience: float = 60.0) -> list[TalkTurn]:
        """Speak a recording (24 kHz mono), listen to the answer's end: one turn, or more if it has pauses.

        Raises TalkError when the server tells nothing for `patience` seconds, or the call ends before that.
        """
        before = len(self.turns)
        self._speak(recording)
        problem = "no answer came; is there speech in the recording?"
        await self._until(lambda: len(self.turns) > before and self._settled, patience, problem)
        return self.turns[before:]

    async def interrupt(self, recording: Audio, after: float, patience: float = 60.0) -> None:
        """Beside a running `say`: wait until `after` seconds of the next reply have been played, then speak
        over it.

        Raises TalkError when that never comes.
        """
        loop = asyncio.get_running_loop()
        before = self._speaker.item

        def playing() -> bool:
            return self._speaker.item != before and self._speaker.played_ms(loop.time()) >= after * 1000

        await self._until(playing, patience, "no reply came to speak over")
        self._speak(recording)

    def _speak(self, recording: Audio) -> None:
        self._unsent = recording
        self._silent_frames = 0

    @property
    def _settled(self) -> bool:
        """The recording is over, nobody speaks, and every turn that was committed is answered."""
        silence = self._silent_frames * _FRAME_SECONDS
        return silence >= _SETTLE_SECONDS and not self._speech_open and not self._unanswered

    async def _until(self, met: Callable[[], bool], patience: float, problem: str) -> None:
        """Look again at every frame that is sent; the call's events and the recording keep the patience."""
        loop = asyncio.get_running_loop()
        self._last_event = loop.time()
        while not met():
            if self._ended is not None:
                raise TalkError(": ".join(filter(None, [f"the call is over ({self._ended})", self._error])))
            if len(self._unsent):
                self._last_event = loop.time()
            if loop.time() - self._last_event > patience:
                raise TalkError(problem)
            self._news.clear()
            await self._news.wait()

    # ---- what is sent

    async def speak(self) -> None:
        """Send the microphone's frames, one every 40 ms by the clock, and say what has been played."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        frames = 0
        with contextlib.suppress(ConnectionClosed):
            while True:
                await self._send_frame()
                frames += 1
                if frames % _REPORT_FRAMES == 0:
                    await self._report(loop.time())
                self._news.set()
                due += _FRAME_SECONDS
                await asyncio.sleep(due - loop.time())

    async def _send_frame(self) -> None:
        frame, self._unsent = self._unsent[:_FRAME], self._unsent[_FRAME:]
        if len(frame) == 0:
            self._silent_frames += 1
        padded = np.zeros(_FRAME, np.float32)
        padded[: len(frame)] = frame
        audio = base64.b64encode(float_to_pcm16(padded)).decode("ascii")
        await self._send("input_audio_buffer.append", audio=audio)

    async def _report(self, now: float) -> None:
        report = (self._speaker.item, round(self._speaker.played_ms(now), 1))
        if report[0] is not None and report != self._reported:
            self._reported = report
            await self._send("rejoinder.playback", item_id=report[0], played_ms=report[1])

    async def _send(self, kind: str, **fields: Any) -> None:
        await self._socket.send(json.dumps({"type": kind, **fields}))

    # ---- what is received

    async def listen(self) -> None:
        """Take in the server's events until the socket closes."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(ConnectionClosed):
            async for message in self._socket:
                self._last_event = loop.time()
                await self._take(json.loads(message), loop.time())
                self._news.set()
        self._ended = self._ended or "the connection was lost"
        self._news.set()

    async def _take(self, event: dict[str, Any], now: float) -> None:
        match event["type"]:
            case "session.created":
                self._greeted = not event["session"]["rejoinder"]["greeting"]
            case "input_audio_buffer.speech_started":
                self._speech_open = True
            case "rejoinder.speech_dismissed":
                self._speech_open = False
            case "input_audio_buffer.committed":
                self._speech_open = False
                self._unanswered.add(event["item_id"])
            case "conversation.item.input_audio_transcription.completed" if not event["transcript"]:
                self._unanswered.discard(event["item_id"])
            case "response.output_audio.delta":
                samples = pcm16_to_float(base64.b64decode(event["delta"]))
                self._audio.setdefault(event["item_id"], []).append(samples)
                self._speaker.receive(event["item_id"], len(samples) / WIRE_RATE, now)
            case "response.done":
                self._greeted = True
                self._reply_is_over(event["response"])
            case "rejoinder.playback.pause":
                self._speaker.pause(now)
                await self._report(now)
            case "rejoinder.playback.resume":
                self._speaker.resume(now)
            case "rejoinder.playback.clear":
                self._speaker.clear(now)
            case "rejoinder.turn":
                self._turn_is_over(event)
            case "rejoinder.call.ended":
                self._ended = event["reason"]
            case "error":
                self._error = event["error"]["message"]

    def _reply_is_over(self, response: dict[str, Any]) -> None:
        pieces = self._audio.pop(response["output"][0]["id"], [])
        self._replies[response["rejoinder"]["turn"]] = np.concatenate([*pieces, _NOTHING])

    def _turn_is_over(self, event: dict[str, Any]) -> None:
        """The record comes after the reply's end."""
        self._unanswered.discard(caller_item(event["turn"]))
        self.turns.append(TalkTurn(event["record"], self._replies.pop(event["turn"], _NOTHING)))


@contextlib.asynccontextmanager
async def talking(
    url: str, *, token: str | None = None, agent: str | None = None
) -> AsyncIterator[TalkClient]:
    """A call to the server at `url` (ws, wss, http or https; the path may be left out). Raises TalkError."""
    offered = [Subprotocol("realtime")]
    if token:  # as a browser does: a header takes ASCII only, and would be quoted in the error
        offered.append(Subprotocol(TOKEN_PROTOCOL + quote(token, safe="")))
    address = socket_address(url, agent)
    try:
        socket = await connect(address, subprotocols=offered, logger=_socket_log, max_size=None, proxy=None)
    except InvalidStatus as error:
        reason = (error.response.body or b"").decode(errors="replace").strip()
        raise TalkError(f"{url} refused the call: {reason or error.response.status_code}") from None
    except (OSError, InvalidHandshake, InvalidURI, TimeoutError, UnicodeError) as error:  # of a host's name
        raise TalkError(f"{url} cannot be reached: {error}; is the server running?") from None
    async with socket:
        client = TalkClient(socket)
        halves = [asyncio.create_task(client.listen()), asyncio.create_task(client.speak())]
        try:
            yield client
        finally:
            for half in halves:
                half.cancel()
            await asyncio.wait(halves)


def socket_address(url: str, agent: str | None = None) -> str:
    """The realtime socket's address of a server's, which may be behind a path's prefix. Raises TalkError."""
    try:
        parts = urlsplit(url if "://" in url else f"ws://{url}")
        named = parts.hostname is not None and parts.port != 0  # a port is looked at when it is read
    except ValueError:
        named = False
    scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme) if named else ""
    if scheme not in ("ws", "wss"):
        raise TalkError(f"{url} is not the address of a server: use ws://HOST:PORT")
    path = parts.path.rstrip("/")
    if not path.endswith(_REALTIME):
        path += _REALTIME
    query = "&".join(filter(None, [parts.query, urlencode({"agent": agent}) if agent else ""]))
    return urlunsplit((scheme, parts.netloc, path, query, ""))
