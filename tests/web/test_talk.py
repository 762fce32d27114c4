"""Recordings as the caller: the client against a scripted call, its loudspeaker on paper, and the command."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from pipeline import events
from pipeline.config import Settings
from tests.web.scripted import ScriptedCall, ScriptedService, on_loop, serving, spoken_reply
from web.commands import call, talk
from web.speaker import Speaker
from web.talk_client import TalkClient, TalkError, TalkTurn, socket_address, talking
from web.waterfall import waterfall

MARKS = {
    "speech_end": 0.0,
    "asr_final": 300.0,
    "llm_start": 310.0,
    "llm_first_token": 500.0,
    "commit": 600.0,
    "llm_first_sentence": 700.0,
    "audio_sent": 800.0,
}
RECORD: dict[str, Any] = {
    "caller_text": "Are you open?",
    "reply_text": "Yes.",
    "heard_text": "Yes.",
    "marks": MARKS,
    "durations": {"voice_to_voice": 800.0, "asr": 300.0},
}
SPEECH = np.full(4800, 0.5, np.float32)


async def greet(call: ScriptedCall) -> None:
    done = events.ReplyDone(0, 1, "r0", "completed", "Hello.", "Hello.")
    await call.say(events.ReplyStarted(0, 1, "r0"), events.ReplyText(0, 1, "r0", "Hello."), done)


async def answer(call: ScriptedCall, turn: int) -> None:
    await call.say(
        events.SpeechStarted(turn, 1, 0),
        events.SpeechStopped(turn, 1, 200),
        events.TranscriptDone(turn, 1, "Are you open?"),
        *spoken_reply(turn, f"r{turn}"),
        events.TurnLogged(turn, 1, RECORD),
    )


async def meet(service: ScriptedService, client: TalkClient) -> ScriptedCall:
    """The greeting is over."""
    waiting = asyncio.create_task(client.greeting())
    call = await service.first_call()
    await greet(call)
    await waiting
    return call


@on_loop
async def test_each_recording_is_spoken_after_the_answer_to_the_one_before() -> None:
    async with serving() as (server, service), talking(server.address) as client:
        call = await meet(service, client)
        for number in (1, 2):
            saying = asyncio.create_task(client.say(SPEECH))
            so_far = len(call.heard) / 16_000
            await call.until_heard(so_far + 0.3)
            assert not saying.done()
            await answer(call, number)
            (turn,) = await saying
            assert turn.as_dict() == {
                "caller": "Are you open?",
                "reply": "Yes.",
                "heard": "Yes.",
                "marks": MARKS,
                "durations": RECORD["durations"],
                "audio_seconds": 0.08,
            }
        assert np.count_nonzero(call.heard > 0.4) == pytest.approx(2 * 0.2 * 16_000, rel=0.05)
        assert ("playback", "r2", 80.0) in call.told


@contextlib.asynccontextmanager
async def saying() -> AsyncIterator[tuple[ScriptedCall, asyncio.Task[list[TalkTurn]]]]:
    """A caller who has begun to speak a recording."""
    async with serving() as (server, service), talking(server.address) as client:
        call = await meet(service, client)
        said = asyncio.create_task(client.say(SPEECH))
        await call.until_heard(0.1)
        yield call, said


async def answer_and_hear_more(call: ScriptedCall, said: asyncio.Task[list[TalkTurn]]) -> None:
    """The first turn is answered, but there is speech after it: the caller waits for what becomes of it."""
    await answer(call, 1)
    await call.say(events.SpeechStarted(2, 1, 300))
    await call.until_heard(2.0)
    assert not said.done()


@on_loop
async def test_a_pause_in_a_recording_may_make_two_turns() -> None:
    async with saying() as (call, said):
        await answer_and_hear_more(call, said)
        await answer(call, 2)
        assert len(await said) == 2


@on_loop
async def test_noise_after_the_answer_is_not_waited_for() -> None:
    async with saying() as (call, said):
        await answer_and_hear_more(call, said)
        await call.say(events.SpeechDismissed(2, 1, 900))
        assert len(await said) == 1


@on_loop
async def test_a_turn_without_a_word_is_not_waited_for() -> None:
    async with saying() as (call, said):
        await call.say(events.SpeechStarted(1, 1, 0), events.SpeechStopped(1, 1, 200))
        await call.say(events.TranscriptDone(1, 1, ""))
        await answer(call, 2)
        assert len(await said) == 1


@on_loop
async def test_an_interruption_waits_until_the_agent_has_been_heard() -> None:
    async with serving() as (server, service), talking(server.address) as client:
        call = await meet(service, client)
        saying = asyncio.create_task(client.say(SPEECH))
        interrupting = asyncio.create_task(client.interrupt(SPEECH, after=0.2))
        await call.until_heard(0.4)
        spoken = np.count_nonzero(call.heard > 0.4)
        await call.say(events.SpeechStarted(1, 1, 0), events.SpeechStopped(1, 1, 200))
        await call.say(events.ReplyStarted(1, 1, "r1"), events.ReplyText(1, 1, "r1", "Yes."))
        await call.say(events.ReplyAudio(1, 1, "r1", np.full(24_000, 0.1, np.float32), 24_000, 0.0))
        await interrupting
        await call.say(events.PausePlayback(1, 1, "r1"))
        await call.say(events.ClearPlayback(1, 1, "r1"), events.SpeechStarted(2, 1, 400))
        await call.say(
            events.ReplyDone(1, 1, "r1", "interrupted", "Yes.", ""), events.TurnLogged(1, 1, RECORD)
        )
        await call.until_heard(len(call.heard) / 16_000 + 0.3)
        assert np.count_nonzero(call.heard > 0.4) > 1.5 * spoken
        reports = [told[2] for told in call.told if told[:2] == ("playback", "r1")]
        assert 200 <= max(reports) < 1000
        await answer(call, 2)
        assert len(await saying) == 2


@on_loop
async def test_no_answer_is_an_error() -> None:
    async with serving() as (server, service), talking(server.address) as client:
        await meet(service, client)
        with pytest.raises(TalkError, match="is there speech"):
            await client.say(SPEECH, patience=0.2)


@on_loop
async def test_the_end_of_the_call_is_an_error_that_says_why() -> None:
    async with serving() as (server, service), talking(server.address) as client:
        call = await meet(service, client)
        call.hang_up("goodbye")
        with pytest.raises(TalkError, match="goodbye"):
            await client.say(SPEECH)
    async with (
        serving(max_calls=1) as (server, _),
        talking(server.address),
        talking(server.address) as second,
    ):
        with pytest.raises(TalkError, match="lines are busy"):
            await second.greeting()


@pytest.mark.parametrize("host", ["a" * 300, f"{'ü' * 64}.example", "\udcff"])
@on_loop
async def test_a_host_that_no_address_can_be_asked_for_is_an_error(host: str) -> None:
    with pytest.raises(TalkError, match="cannot be reached"):
        async with talking(f"ws://{host}:9"):
            pass


@on_loop
async def test_a_token_may_have_letters_of_any_language() -> None:
    async with (
        serving(auth_token="schlüssel-鍵") as (server, _),
        talking(server.address, token="schlüssel-鍵"),
    ):
        pass


@on_loop
async def test_a_token_is_not_logged_however_much_is(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving(auth_token="sesame-0123") as (server, _), talking(server.address, token="sesame-0123"):
        pass
    assert "sesame" not in caplog.text


@on_loop
async def test_a_server_that_refuses_or_is_not_there_is_an_error() -> None:
    async with serving(auth_token="sesame-sesame-0123") as (server, _):
        with pytest.raises(TalkError, match="bearer token"):
            await talking(server.address).__aenter__()
        async with talking(server.address, token="sesame-sesame-0123"):
            pass
    with pytest.raises(TalkError, match="is the server running"):
        await talking(server.address).__aenter__()


@pytest.mark.parametrize(
    ("url", "agent", "expected"),
    [
        ("ws://host:8765", None, "ws://host:8765/v1/realtime"),
        ("host:8765", None, "ws://host:8765/v1/realtime"),
        ("http://host:8765/", None, "ws://host:8765/v1/realtime"),
        ("https://host/prefix/", None, "wss://host/prefix/v1/realtime"),
        ("ws://host/prefix?token=x", None, "ws://host/prefix/v1/realtime?token=x"),
        ("https://host/prefix/v1/realtime", "front desk", "wss://host/prefix/v1/realtime?agent=front+desk"),
        ("ws://host/?token=x", "support", "ws://host/v1/realtime?token=x&agent=support"),
    ],
)
def test_addresses(url: str, agent: str | None, expected: str) -> None:
    assert socket_address(url, agent) == expected


@pytest.mark.parametrize("url", ["ftp://host", "ws://", "://x", "ws://host:port", "ws://[::1"])
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(TalkError, match="ws://HOST:PORT"):
        socket_address(url)


# ---- the loudspeaker on paper


def test_what_has_been_played_by_now() -> None:
    speaker = Speaker()
    speaker.receive("a", 1.0, now=10.0)
    assert speaker.played_ms(10.4) == pytest.approx(400)
    speaker.pause(10.5)
    assert speaker.played_ms(12.0) == pytest.approx(500)
    speaker.resume(12.0)
    assert speaker.played_ms(12.2) == pytest.approx(700)
    speaker.receive("a", 1.0, now=12.2)
    assert speaker.played_ms(20.0) == pytest.approx(2000)
    speaker.receive("a", 1.0, now=21.0)  # after it ran dry, it goes on from there
    assert speaker.played_ms(21.5) == pytest.approx(2500)
    speaker.clear(21.5)
    assert speaker.played_ms(30.0) == pytest.approx(2500)
    speaker.receive("b", 1.0, now=30.0)
    assert speaker.played_ms(30.1) == pytest.approx(100)


# ---- the waterfall in the terminal


def drawn(marks: dict[str, float], durations: dict[str, float]) -> list[str]:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(waterfall(marks, durations))
    return capture.get().splitlines()


def test_stages_are_drawn_where_they_were_and_shaded_behind_the_gate() -> None:
    lines = drawn(MARKS, {"voice_to_voice": 800.0})
    assert [line[:14].strip() for line in lines] == [
        "end of turn",
        "recognition",
        "first token",
        "first sentence",
        "release",
        "voice to voice",
    ]
    assert lines[0].count("▒") == pytest.approx(37.5, abs=1)  # 600 of 800 ms in 50 cells
    assert "█" not in lines[0]
    assert lines[3].count("▒") == pytest.approx(6.25, abs=1)  # half behind the gate
    assert lines[3].count("█") == pytest.approx(6.25, abs=1)
    assert lines[4].count("█") == pytest.approx(12.5, abs=1)
    assert "190 ms" in lines[2]
    assert lines[5].rstrip().endswith("800 ms")


def test_a_turn_without_an_answer_draws_what_there_is() -> None:
    assert [line[:14].strip() for line in drawn({"speech_end": 0.0, "asr_final": 20.0}, {})] == [
        "recognition"
    ]
    assert drawn({}, {}) in ([], [""])


# ---- the command


@pytest.mark.parametrize("own_server", [talk._own_server, lambda of: call._own_server(of, asyncio.Event())])
@on_loop
async def test_a_server_of_ones_own_does_not_want_a_running_ones_ports(
    own_server: Callable[[Settings], AbstractAsyncContextManager[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def start(settings: Settings, *_: Any) -> ScriptedService:
        return ScriptedService(settings)

    monkeypatch.setattr("pipeline.service.Service.start", start)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with own_server(Settings(port=port, audiosocket_port=port)) as address:
            assert str(port) not in address


def test_a_turn_is_reported_as_logged() -> None:
    turn = TalkTurn(RECORD, np.zeros(12_000, np.float32))
    assert turn.as_dict()["audio_seconds"] == 0.5
