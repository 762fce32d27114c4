"""One realtime connection: reads what the client sends, acts on the call, and writes what the call says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

from pipeline.call import Call
from pipeline.events import CallEnded, CallEvent, PeerGone
from web.realtime import client_events as client
from web.realtime.client_events import BadEvent
from web.realtime.input_buffer import InputBuffer
from web.realtime.server_events import Translator, Wire, nothing_to_answer, response
from web.realtime.session import Session
from web.routes import Request
from web.sockets import Socket
from web.switchboard import CallRefused, Switchboard, conduct

_TYPED_LIMIT = 4_000
_CLOSE_CODES = {"shutdown": 1001, "error": 1011}
_TRY_AGAIN_LATER = 1013
_POLICY_VIOLATION = 1008


class RealtimePeer:
    """The client's end of the socket, as the call sees it."""

    holds_playback = True

    def __init__(self, socket: Socket, session: Session) -> None:
        self.translator = Translator(session)
        self.end_reason: str | None = None
        self._socket = socket

    async def send(self, event: CallEvent) -> None:
        """Translate and send. Raises PeerGone."""
        if isinstance(event, CallEnded):
            self.end_reason = event.reason
        for wire in self.translator.translate(event):
            await self.put(wire)

    async def put(self, wire: Wire) -> None:
        """Send one server event. Raises PeerGone."""
        await self._socket.send(json.dumps(wire, ensure_ascii=False))

    def messages(self) -> AsyncIterator[str | bytes]:
        """What the client sends, until it is gone."""
        return self._socket.messages()


class RealtimeFrontEnd:
    """The handler of `/v1/realtime`: one call for each socket."""

    def __init__(self, switchboard: Switchboard) -> None:
        self._switchboard = switchboard

    async def handle(self, socket: Socket, request: Request) -> None:
        """Run one connection from its opening to its close."""
        session = Session()
        peer = RealtimePeer(socket, session)
        try:
            with self._switchboard.line(peer, agent=_wanted_agent(request), origin="web") as call:
                created = peer.translator.event("session.created", session=session.describe(call.agent))
                await peer.put(created)
                await conduct(call, _ClientReader(peer, session, call).listen())
        except CallRefused as refused:
            await self._refuse(socket, peer, refused)
        except PeerGone:
            return
        else:
            reason = peer.end_reason or "error"
            await socket.close(_CLOSE_CODES.get(reason, 1000), reason)

    async def _refuse(self, socket: Socket, peer: RealtimePeer, refused: CallRefused) -> None:
        kind = "invalid_request_error" if refused.code == "unknown_agent" else "server_error"
        code = _POLICY_VIOLATION if refused.code == "unknown_agent" else _TRY_AGAIN_LATER
        try:
            await peer.put(peer.translator.error(kind, refused.code, refused.message))
        except PeerGone:
            return
        await socket.close(code, refused.code)


def _wanted_agent(request: Request) -> str | None:
    """`?agent=NAME` of the socket's address."""
    names = parse_qs(urlsplit(request.path).query).get("agent")
    return names[0] if names else None


def _typed_text(event: client.ItemCreate, *, waiting: int) -> str:
    """The message's text. `waiting`: characters of those before it. Raises BadEvent."""
    text = client.typed_text(event)
    if waiting + len(text) > _TYPED_LIMIT:
        raise BadEvent(
            "text_too_long",
            f"typed messages before one response may have {_TYPED_LIMIT} characters together",
            param="item.content",
            event_id=event.event_id,
        )
    return text


class _ClientReader:
    """Acts on the messages of one client.

    What steers the call is taken at once. Only audio waits for its time, and behind it the events whose
    meaning lies in their order with it: commit, response.create and the typed messages that it answers.
    """

    def __init__(self, peer: RealtimePeer, session: Session, call: Call) -> None:
        self._peer = peer
        self._out = peer.translator
        self._session = session
        self._call = call
        self._input = InputBuffer(call.hear, session.input)
        self._typed: list[str] = []
        self._committed: int | None = None  # the turn that the client committed and asked no response for yet

    async def listen(self) -> None:
        """Until the client is gone. A message that is wrong gets an error, and the call goes on."""
        try:
            async with asyncio.TaskGroup() as group:
                pacing = group.create_task(self._input.run())
                async for message in self._peer.messages():
                    try:
                        await self._act(client.decode_event(message))
                    except BadEvent as bad:
                        await self._peer.put(self._out.refusal(bad))
                pacing.cancel()
        except* PeerGone:
            pass

    async def _act(self, event: client.AnyClientEvent) -> None:
        match event:
            case client.AudioAppend():
                self._input.append(event)
            case client.PlaybackReport(item_id=item, played_ms=played):
                self._call.playback(self._reply(item, event), played)
            case client.AudioCommit():
                self._input.end_stream()
                await self._input.behind(event, lambda: self._in_turn(event))
            case client.AudioClear():
                self._input.clear()
                await self._put("input_audio_buffer.cleared")
            case client.ItemCreate():
                _typed_text(event, waiting=0)
                await self._input.behind(event, lambda: self._in_turn(event))
            case client.ItemTruncate():
                await self._truncate(event)
            case client.ResponseCreate():
                self._input.flush()
                await self._input.behind(event, lambda: self._in_turn(event))
            case client.ResponseCancel():
                self._cancel(event)
            case client.SessionUpdate():
                await self._update(event)

    async def _in_turn(self, event: client.AudioCommit | client.ItemCreate | client.ResponseCreate) -> None:
        """The audio that was sent before it has been passed on."""
        try:
            match event:
                case client.AudioCommit():
                    await self._commit(event)
                case client.ItemCreate():
                    await self._type(event)
                case client.ResponseCreate():
                    await self._respond(event)
        except BadEvent as bad:
            await self._peer.put(self._out.refusal(bad))

    async def _commit(self, event: client.AudioCommit) -> None:
        turn = await self._call.respond()
        if turn is None:
            raise BadEvent(
                "input_audio_buffer_commit_empty",
                "there is nothing to commit: nothing was said since the last turn",
                event_id=event.event_id,
            )
        self._committed = turn

    async def _type(self, event: client.ItemCreate) -> None:
        """Keep a typed message until the client asks for the response to it."""
        text = _typed_text(event, waiting=sum(map(len, self._typed)))
        self._typed.append(text)
        for wire in self._out.typed_message(event.item.id, text):
            await self._peer.put(wire)

    async def _respond(self, event: client.ResponseCreate) -> None:
        """Answer the typed messages, or else what the caller has said so far."""
        if self._typed:
            text, self._typed = " ".join(self._typed), []
            await self._call.say_text(text)
            return
        turn = await self._call.respond()
        if turn is None and self._call.answering not in (None, self._committed):
            raise BadEvent(
                "conversation_already_has_active_response",
                "a response is under way: wait for its response.done, or cancel it",
                event_id=event.event_id,
            )
        # A commit is answered unasked; this may be the request for that answer.
        turn = turn or self._call.answering
        self._committed = None
        if turn is None:
            raise nothing_to_answer(event.event_id)
        self._out.asked_for = (turn, event.event_id)

    def _cancel(self, event: client.ResponseCancel) -> None:
        reply = self._call.active_reply
        if reply is None or event.response_id not in (None, response(reply)):
            raise BadEvent(
                "response_cancel_not_active",
                "there is no such response under way",
                param="response_id",
                event_id=event.event_id,
            )
        self._out.cancelled_by_client.add(reply)
        self._call.cancel_reply()

    async def _truncate(self, event: client.ItemTruncate) -> None:
        self._call.truncate(self._reply(event.item_id, event), event.audio_end_ms)
        await self._put(
            "conversation.item.truncated",
            item_id=event.item_id,
            content_index=0,
            audio_end_ms=event.audio_end_ms,
        )

    async def _update(self, event: client.SessionUpdate) -> None:
        self._session.update(event)
        self._input.change_format(self._session.input)
        await self._put("session.updated", session=self._session.describe(self._call.agent))

    def _reply(self, item_id: str, event: client.ItemTruncate | client.PlaybackReport) -> str:
        reply = self._out.replies.get(item_id)
        if reply is None:
            raise BadEvent(
                "item_not_found",
                f"there is no reply with the item id {item_id[:80]!r}",
                param="item_id",
                event_id=event.event_id,
            )
        return reply

    async def _put(self, kind: str, **fields: object) -> None:
        await self._peer.put(self._out.event(kind, **fields))
