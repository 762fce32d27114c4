"""What a client asks of a call is done behind the audio that it sent before, as far as that has been listened
to or not."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from fixtures.fakes import HELLO, Scene, agent, question
from fixtures.virtual_time import run
from pipeline.agent import Interruptions
from pipeline.call import Call
from pipeline.events import ReplyDone, ReplyStarted, SpeechStopped
from pipeline.hearing.microphone import Microphone

GREETING = "Hello there, this is a greeting of some length."


class Asking:
    """Asks for an answer to what was said so far, as an action of a scene; keeps what came of it."""

    def __init__(self) -> None:
        self.asked: list[asyncio.Future[int | None]] = []

    def __call__(self, call: Call) -> None:
        self.asked.append(call.respond())

    @property
    def turns(self) -> list[int | None]:
        return [None if future.cancelled() else future.result() for future in self.asked]


@pytest.mark.parametrize("speculate", [True, False])
@pytest.mark.parametrize("packet_seconds", [0.1, 0.5, 2.0])
def test_the_words_of_the_last_message_belong_to_the_turn(packet_seconds: float, speculate: bool) -> None:
    ask = Asking()
    scene = question(
        speech=[(1.0, 9.0)],
        actions=[(2.001, ask)],
        packet_seconds=packet_seconds,
        stage_seconds={"vad": 0.05},
        speculate=speculate,
    )
    run(scene.play())
    assert ask.turns == [1]
    assert scene.records[0].caller_text == "What time is it?"
    assert scene.peer.times(SpeechStopped)[0] == pytest.approx(2.05, abs=0.06)


def test_one_word_in_one_message_is_a_turn() -> None:
    ask = Asking()
    scene = question(
        speech=[(1.0, 1.4)],
        words=[(" Yes.", 1.4)],
        packet_seconds=1.4,
        actions=[(1.401, ask)],
        stage_seconds={"vad": 0.05},
    )
    run(scene.play())
    assert ask.turns == [1]
    assert [record.caller_text for record in scene.records] == ["Yes."]
    assert scene.peer.times(SpeechStopped) == [pytest.approx(1.45, abs=0.01)]


def test_nothing_said_is_told() -> None:
    ask = Asking()
    times = [
        0.5,
        1.0,
        2.101,
        2.102,
        8.9,
        9.5,
    ]  # before any audio, in silence, twice, answered, when it is over
    scene = question(actions=[(at, ask) for at in times], seconds=9.4)

    async def play() -> None:
        call = await scene.play()
        ask(call)

    run(play())
    assert ask.turns[:2] == [None, None]
    assert ask.turns[2:5] == [1, None, None]
    assert ask.asked[-1].cancelled(), "the call is over"


@pytest.mark.parametrize(("mode", "turns"), [("words", [1]), ("at_once", [1]), ("off", [None])])
def test_to_a_client_that_ends_the_turn_a_murmur_over_the_agent_is_one(
    mode: str, turns: list[int | None]
) -> None:
    ask = Asking()
    scene = Scene(
        speech=[(1.0, 1.5)],
        words=[(" Yes.", 1.4)],
        agent=agent(greeting=GREETING, interruptions=Interruptions(mode=mode)),
        actions=[(1.5, ask)],
    )
    run(scene.play())
    assert ask.turns == turns
    greeting = scene.peer.of(ReplyDone)[0]
    assert greeting.status == ("interrupted" if turns == [1] else "completed")
    assert [record.caller_text for record in scene.records] == (["Yes."] if turns == [1] else [])


def test_a_typed_message_replaces_the_audio_that_was_sent_before_it() -> None:
    scene = question(
        packet_seconds=2.0,
        stage_seconds={"vad": 0.05},
        actions=[(2.001, lambda call: call.say_text("Where are you?"))],
    )
    run(scene.play())
    assert [record.caller_text for record in scene.records if record.status == "completed"] == [
        "Where are you?"
    ]
    assert len(scene.peer.of(ReplyStarted)) == 1


@pytest.mark.parametrize("messages", [1, 2])
@pytest.mark.parametrize("said", ["What time is it?", ""])
def test_a_typed_message_behind_a_turn_that_was_ended_comes_behind_its_words(
    said: str, messages: int
) -> None:
    """They are still being recognised then; the answer to what was typed last is the one that is heard."""
    ask = Asking()
    typed = [f"Message {number}." for number in range(messages)]
    scene = question(
        words=HELLO if said else [],
        actions=[(2.001, ask), *((2.101, lambda call, text=text: call.say_text(text)) for text in typed)],
        stage_seconds={"asr": 1.0},
        speculate=False,
    )
    run(scene.play())
    assert ask.turns == [1]
    assert [record.caller_text for record in scene.records] == [*filter(None, [said]), *typed]
    assert [record.status for record in scene.records][-1] == "completed"
    assert {record.status for record in scene.records[:-1]} <= {"interrupted"}


def test_who_waits_when_the_call_ends_waits_no_longer() -> None:
    ask = Asking()
    scene = question(stage_seconds={"vad": 0.5}, actions=[(2.2, ask), (2.3, Call.hang_up)])
    run(scene.play())
    assert ask.asked[0].cancelled()


def test_whose_answer_is_being_made_or_said() -> None:
    seen: list[tuple[int | None, bool]] = []

    def look(call: Call) -> None:
        seen.append((call.answering, call.active_reply is not None))

    scene = Scene(
        speech=[(3.9, 4.0)],
        words=[(" Yes?", 4.0)],
        agent=agent(greeting="Hello."),
        speculate=False,
        stage_seconds={"asr": 2.0},
        seconds=13.0,
        actions=[*((at, look) for at in (0.1, 2.9, 4.2, 6.3, 12.0)), (4.1, lambda call: call.respond())],
    )
    run(scene.play())
    assert seen == [(0, True), (None, False), (1, False), (1, True), (None, False)]


# ---- the microphone


def test_a_cut_parts_the_audio_before_it_from_what_follows() -> None:
    async def listen() -> list[int]:
        microphone = Microphone(lambda: 0.0)
        assert microphone.cut() == 0
        microphone.hear(np.ones(100, np.float32))
        assert microphone.cut() == microphone.cut() == 100
        microphone.hear(np.ones(30, np.float32))
        microphone.hear(np.ones(20, np.float32))
        assert microphone.cut() == 150
        microphone.hear(np.ones(7, np.float32))
        sizes = []
        while microphone.waiting:
            audio = await microphone.next()
            microphone.listened_to(audio)
            sizes.append(audio.size)
        assert microphone.end == microphone.cut() == 157
        microphone.hear(np.ones(5, np.float32))
        return [*sizes, (await microphone.next()).size]

    assert run(listen()) == [100, 50, 7, 5]
