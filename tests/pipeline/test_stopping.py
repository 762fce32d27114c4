"""What stops when a reply is not wanted any more or a stage breaks, whenever it happens; in virtual time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fixtures.fakes import Parrot, RecordingPeer, Scene, SlowReader
from fixtures.virtual_time import run
from pipeline.call import Call
from pipeline.events import (
    CallEnded,
    CallEvent,
    CallFailed,
    ReplyAudio,
    ReplyDone,
    ReplyStarted,
    ReplyText,
    SpeechStarted,
)
from tests.pipeline.test_schedules import scene_of
from tts.voice import VoiceChunk

STORY = "Once there was a king. He had a fool. The fool had a dog. The dog had fleas. The fleas had fun."


def test_an_interruption_stops_generation_synthesis_and_audio() -> None:
    language = Parrot(lambda text: STORY)
    scene = Scene(
        speech=[(1.0, 2.0), (3.2, 4.2)],
        words=[(" Tell", 1.4), (" me.", 2.0), (" No,", 3.5), (" stop", 3.8), (" it.", 4.2)],
        language=language,
        stage_seconds={"llm": 0.25},
        seconds=5.0,
    )
    run(scene.play())
    first = scene.records[0]
    assert first.status == "interrupted"
    assert len(first.reply_text) < len(STORY), "generation stopped"
    assert "The fleas had fun." not in scene.voice.said
    events = [event for _, event in scene.peer.events]
    at, done = next((at, event) for at, event in enumerate(events) if isinstance(event, ReplyDone))
    later = [event for event in events[at:] if isinstance(event, ReplyAudio | ReplyText)]
    assert all(event.reply_id != done.reply_id for event in later)


class Breaking(SlowReader):
    """A voice that breaks in the middle of the second sentence."""

    def synthesise(self, text: str, *, cancelled: Callable[[], bool]) -> Iterator[VoiceChunk]:
        for number, chunk in enumerate(super().synthesise(text, cancelled=cancelled)):
            if len(self.said) == 2 and number == 10:
                raise RuntimeError("broken")
            yield chunk


def telling(**changes: Any) -> Scene:
    """The caller asks for the story, in two seconds."""
    return Scene(
        speech=[(1.0, 2.0)],
        words=[(" Tell", 1.2), (" me", 1.5), (" more.", 2.0)],
        language=Parrot(lambda text: STORY),
        seconds=9.0,
        **changes,
    )


def test_what_a_broken_voice_left_out_was_not_heard() -> None:
    scene = telling(voice=Breaking())
    run(scene.play())
    assert (scene.records[0].status, scene.records[0].heard_text) == (
        "failed",
        "Once there was a king. He had",
    )


def test_a_peer_that_played_all_there_was_has_not_heard_what_was_not_made() -> None:
    amended = []

    def interrupt(call: Call) -> None:
        answer = call.player.answer
        assert answer is not None
        call.cancel_reply()
        call.truncate(answer.reply.id, 1e6)
        amended.append(answer.heard)

    scene = telling(stage_seconds={"tts": 0.06}, actions=[(3.5, interrupt)])
    run(scene.play())
    assert amended == ["Once there"]


def test_of_two_messages_at_once_only_the_second_is_answered_aloud() -> None:
    def type_two(call: Call) -> None:
        call.say_text("The first?")
        call.say_text("The second?")

    scene = Scene(speech=[], words=[], seconds=9.0, actions=[(1.0, type_two)])
    run(scene.play())
    spoken = {event.reply_id for event in scene.peer.of(ReplyAudio)}
    assert spoken == {scene.peer.of(ReplyStarted)[-1].reply_id}
    assert [(row.turn, row.status) for row in scene.records] == [(1, "interrupted"), (2, "completed")]


@pytest.mark.parametrize(
    ("until", "words", "statuses"),
    [
        (5.0, [(" And", 3.0), (" also", 3.5), (" tell", 4.0), (" her.", 5.0)], ["interrupted", "completed"]),
        (2.9, [], ["completed"]),
    ],
)
def test_an_answer_that_comes_late_waits_for_who_speaks_already(
    until: float, words: list[tuple[str, float]], statuses: list[str]
) -> None:
    """Without drafting, the words of the first turn are known when the caller has begun the next."""
    scene = telling(speculate=False, stage_seconds={"asr": 0.5})
    scene.speech.append((2.55, until))
    scene.words += words
    scene.seconds = 14.0
    run(scene.play())
    assert [record.status for record in scene.records] == statuses
    spoken = [at for at, event in scene.peer.events if isinstance(event, ReplyAudio)]
    assert not [at for at in spoken if 2.7 < at < until]
    assert len(scene.peer.of(SpeechStarted)) == 2


def test_a_turn_that_the_end_met_before_its_words_were_known_is_logged() -> None:
    scene = telling(speculate=False, stage_seconds={"asr": 0.5}, actions=[(2.5, Call.hang_up)])
    run(scene.play())
    assert [(record.turn, record.status) for record in scene.records] == [(1, "hang_up")]
    assert "commit" in scene.records[0].marks


class Insistent(RecordingPeer):
    """A client that types and demands an answer while the call's end is on its way to it."""

    call: Call

    async def send(self, event: CallEvent) -> None:
        await super().send(event)
        if isinstance(event, CallEnded):
            self.call.say_text("Are you there?")
            self.call.respond()


def test_what_a_client_still_sends_when_the_call_has_ended_is_dropped() -> None:
    peer = Insistent()
    scene = telling(peer=peer, actions=[(1.5, lambda call: setattr(peer, "call", call)), (1.6, Call.hang_up)])
    run(scene.play())
    assert isinstance(peer.events[-1][1], CallEnded)


def breaking(seed: int) -> Scene:
    """A random schedule in which one stage breaks at a random time, for good."""
    scene = scene_of(seed)
    rng = random.Random(seed)
    broken: list[Callable[[Call], None]] = [
        lambda call: setattr(scene.language, "failing", RuntimeError("broken")),
        lambda call: setattr(scene.voice, "failing", RuntimeError("broken")),
        lambda call: setattr(scene.recogniser, "failing", RuntimeError("broken")),
    ]
    scene.actions.append((rng.uniform(0.1, scene.seconds), rng.choice(broken)))
    return scene


@pytest.mark.timeout(60)
def test_a_stage_that_breaks_at_any_time_is_named_and_leaves_nothing_running() -> None:
    failed = 0
    for seed in range(200):
        scene = breaking(seed)
        try:
            run(scene.play())
            failed += check(scene)
        except BaseException as error:
            error.add_note(f"schedule {seed}")
            raise
    assert failed > 50, "most schedules came to use what was broken"


def check(scene: Scene) -> bool:
    """Every reply that began ended, once; a failure is told; the call's last event is its end."""
    events = [event for _, event in scene.peer.events]
    begun = [event.reply_id for event in scene.peer.of(ReplyStarted)]
    assert [event.reply_id for event in scene.peer.of(ReplyDone)] == begun
    assert isinstance(events[-1], CallEnded)
    assert len(scene.peer.of(CallEnded)) == 1
    assert scene.language.open_conversations == 0
    failures = scene.peer.of(CallFailed)
    assert {failure.message for failure in failures} <= {"broken"}
    if events[-1].reason == "error":
        assert failures
    return bool(failures)
