"""Whole calls: real speech over a real socket into the real default models, and what the latency log says of
them."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import numpy as np
import pytest
from websockets.asyncio.client import ClientConnection, connect

from asr.recogniser import Recogniser
from fixtures.fakes import RecordingPeer
from fixtures.questions import QUESTIONS
from fixtures.recordings import read_aloud
from fixtures.speech import RATE, caller_voice, resampled, speak
from fixtures.words import plain, word_error_rate
from pipeline.agent import AgentError, choose_agent
from pipeline.audio import Audio, float_to_pcm16
from pipeline.telemetry.timeline import MARKS
from tests.calls.conftest import BRISK, LiveServer
from tests.machine import program, recordings
from web.talk_client import WIRE_RATE, TalkClient, TalkError, TalkTurn, socket_address, talking

T = TypeVar("T")

LIBRIVOX = "sense_and_sensibility_01_austen_64kb-0870"


def call(
    live: LiveServer, talk: Callable[[TalkClient], Coroutine[Any, Any, T]], agent: str | None = None
) -> T:
    """Connect, wait for the greeting if the agent has one, and talk."""

    async def run() -> T:
        async with talking(live.url, agent=agent) as client:
            await client.greeting()
            return await talk(client)

    return asyncio.run(run())


def spoken(text: str, speaker: str = "piper-joe") -> Audio:
    """`text` in a voice that is not the agent's, at the wire's rate."""
    program("espeak-ng")
    return resampled(speak(caller_voice(speaker), text), RATE, WIRE_RATE)


def recognised(live: LiveServer, audio: Audio) -> str:
    """What the recogniser makes of audio at the wire's rate."""
    recogniser = live.service.stages.recogniser
    assert isinstance(recogniser, Recogniser)
    utterance = recogniser.open()
    utterance.feed(resampled(audio, WIRE_RATE))
    return utterance.finish(lambda: False).text


@pytest.fixture(scope="module")
def two_questions(live: LiveServer) -> list[TalkTurn]:
    """A call of two questions; several tests look at it."""
    first, second = QUESTIONS[3], QUESTIONS[5]

    async def talk(client: TalkClient) -> list[TalkTurn]:
        return [*await client.say(spoken(first.text)), *await client.say(spoken(second.text))]

    return call(live, talk)


def test_the_caller_is_understood_and_the_answers_fit(two_questions: list[TalkTurn]) -> None:
    assert len(two_questions) == 2
    for turn, question in zip(two_questions, (QUESTIONS[3], QUESTIONS[5]), strict=True):
        assert word_error_rate(question.text, turn.record["caller_text"]) <= 0.2
        assert question.is_right(turn.record["reply_text"]), turn.record["reply_text"]


def test_the_replys_audio_says_the_replys_text(live: LiveServer, two_questions: list[TalkTurn]) -> None:
    hold_phrase = plain(choose_agent("receptionist").hold_phrase)
    for turn in two_questions:
        said = plain(recognised(live, turn.audio)).removeprefix(
            hold_phrase
        )  # a slow machine may have asked for time
        assert word_error_rate(turn.record["reply_text"], said) <= 0.25


def test_the_log_has_both_turns_complete_and_in_order(
    live: LiveServer, two_questions: list[TalkTurn]
) -> None:
    call_id = two_questions[0].record["call_id"]
    rows = [row for row in live.rows() if row["call_id"] == call_id]
    assert sorted(row["turn"] for row in rows) == [1, 2]
    for turn in two_questions:
        marks = turn.record["marks"]
        assert set(MARKS) - {"interrupted", "audio_heard"} <= set(marks)
        assert marks["speech_start"] < marks["speech_end"] == 0
        for order in (
            ("speech_end", "soft_end", "commit", "audio_sent", "reply_end"),
            ("speech_end", "asr_final", "llm_start", "llm_first_token", "llm_first_sentence"),
            ("llm_first_sentence", "tts_start", "tts_first_audio", "audio_sent"),
        ):
            assert [marks[m] for m in order] == sorted(marks[m] for m in order), marks
        durations = turn.record["durations"]
        assert durations["voice_to_voice"] == pytest.approx(
            durations["endpoint"] + durations["after_commit"], abs=0.3
        )
        assert turn.record["heard_text"] == turn.record["reply_text"]


def test_the_second_turn_reads_only_its_own_words(two_questions: list[TalkTurn]) -> None:
    second = two_questions[1].record
    assert second["prompt_tokens"] - second["cached_tokens"] < 40


def test_a_long_recorded_sentence_is_transcribed(live: LiveServer) -> None:
    recordings()
    (read,) = (one for one in read_aloud() if one.name == LIBRIVOX)

    async def talk(client: TalkClient) -> list[TalkTurn]:
        return await client.say(resampled(read.audio, RATE, WIRE_RATE))

    said = " ".join(turn.record["caller_text"] for turn in call(live, talk, BRISK))
    assert word_error_rate(read.text, said) <= 0.15, said


def test_an_interruption_stops_the_audio_and_keeps_what_was_heard(live: LiveServer) -> None:
    question, interruption = spoken(QUESTIONS[18].text), spoken("No, wait. What does a filling cost?")

    async def talk(client: TalkClient) -> list[TalkTurn]:
        asking = asyncio.create_task(client.say(question))
        await client.interrupt(interruption, after=0.8)
        return await asking

    first, second = call(live, talk)
    assert first.record["interrupted"]
    assert len(first.record["heard_text"]) < len(first.record["reply_text"])
    assert first.record["reply_text"].startswith(first.record["heard_text"])
    assert QUESTIONS[4].is_right(second.record["reply_text"]), second.record


def test_two_callers_at_once(live: LiveServer) -> None:
    async def one(text: str, speaker: str) -> list[TalkTurn]:
        async with talking(live.url, agent=BRISK) as client:
            await client.greeting()
            return await client.say(spoken(text, speaker))

    async def both() -> list[list[TalkTurn]]:
        return await asyncio.gather(one(QUESTIONS[3].text, "piper-joe"), one(QUESTIONS[5].text, "hibari"))

    (first,), (second,) = asyncio.run(both())
    assert QUESTIONS[3].is_right(first.record["reply_text"])
    assert QUESTIONS[5].is_right(second.record["reply_text"])


def test_silence_is_no_turn(live: LiveServer) -> None:
    before = len(live.rows())

    async def talk(client: TalkClient) -> None:
        with pytest.raises(TalkError, match="is there speech"):
            await client.say(np.zeros(5 * WIRE_RATE, np.float32), patience=1.0)

    call(live, talk, BRISK)
    assert len(live.rows()) == before


def test_a_caller_who_vanishes_in_mid_sentence_leaves_a_row(live: LiveServer) -> None:
    before = {row["call_id"] for row in live.rows()}
    audio = spoken(QUESTIONS[28].text)

    async def speak(socket: ClientConnection) -> None:
        while True:
            for start in range(0, len(audio), 960):
                frame = base64.b64encode(float_to_pcm16(audio[start : start + 960])).decode()
                await socket.send(json.dumps({"type": "input_audio_buffer.append", "audio": frame}))
                await asyncio.sleep(0.04)

    async def vanish() -> None:
        """As soon as the service has noticed that somebody speaks."""
        socket = await connect(socket_address(live.url), max_size=None)
        speaking = asyncio.ensure_future(speak(socket))
        async for message in socket:
            if json.loads(message)["type"] == "input_audio_buffer.speech_started":
                break
        speaking.cancel()
        socket.transport.abort()

    asyncio.run(vanish())

    statuses = {row["turn"]: row["status"] for row in live.rows() if row["call_id"] not in before}
    assert statuses[max(statuses)] == "peer_gone"


def test_clients_choose_among_the_loaded_agents(live: LiveServer) -> None:
    greetings = {}
    for name in ("receptionist", "support"):
        with live.service.line(RecordingPeer(), agent=name) as call:
            greetings[name] = call.agent.greeting
    assert greetings["support"] != greetings["receptionist"]
    with (
        pytest.raises(AgentError, match="receptionist, support"),
        live.service.line(RecordingPeer(), agent="../receptionist"),
    ):
        raise AssertionError("the call was opened")
