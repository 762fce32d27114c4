"""A thousand random schedules: whatever the order of things, nothing of a stale revision is heard or
remembered."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from fixtures.fakes import QUIET, Detector, Parrot, RecordingPeer, Scene
from fixtures.virtual_time import run
from pipeline.agent import Agent, Interruptions
from pipeline.call import Call
from pipeline.events import (
    CallEnded,
    ClearPlayback,
    ReplyAudio,
    ReplyDone,
    ReplyStarted,
    ReplyText,
    SpeechStopped,
    TranscriptDelta,
    TranscriptDone,
)

SCHEDULES = 1000
VOCABULARY = [" yes", " no", " Monday,", " Tuesday", " mm-hm", " please", " forty", " and", " the", " order."]


def scene_of(seed: int) -> Scene:
    """Bursts of speech with pauses around every deadline there is, slow and fast stages, and clients that
    meddle."""
    rng = random.Random(seed)
    speech, words, at = [], [], 0.3
    for _ in range(rng.randint(1, 6)):
        start = at + rng.choice([0.1, 0.2, 0.25, 0.35, 0.5, 0.9, 1.6, 3.0]) + rng.random() * 0.1
        end = start + rng.choice([0.08, 0.2, 0.5, 1.2]) + rng.random() * 0.1
        speech.append((start, end))
        said = rng.randint(0, 3)
        words += [(rng.choice(VOCABULARY), start + (end - start) * (i + 1) / said) for i in range(said)]
        at = end
    meddling = [
        lambda call: call.cancel_reply(),
        lambda call: call.respond(),
        lambda call: call.say_text("typed words"),
        lambda call: call.digit("5"),
        lambda call: call.hang_up(),
    ]
    actions = [(rng.uniform(0.2, at + 2), rng.choice(meddling)) for _ in range(rng.choice([0, 0, 1, 2]))]
    mode = rng.choice(["off", "words", "words", "at_once"])
    return Scene(
        speech=speech,
        words=words,
        seconds=at + rng.uniform(0.5, 5.0),
        detector=Detector(*(rng.random() for _ in range(8))),
        language=Parrot(),
        agent=Agent(
            name="test",
            persona="Be brief.",
            greeting=rng.choice(["", "Hello there."]),
            silence=QUIET,
            interruptions=Interruptions(mode=mode, words=rng.choice([1, 2])),
        ),
        speculate=rng.random() < 0.8,
        peer=RecordingPeer(holds_playback=rng.random() < 0.5),
        stage_seconds={
            "asr": rng.choice([0.02, 0.15, 0.5]),
            "end_of_turn": rng.choice([0.01, 0.05, 0.3]),
            "llm": rng.choice([0.002, 0.03, 0.1]),
            "tts": rng.choice([0.002, 0.02, 0.1]),
        },
        actions=actions,
        packet_seconds=rng.choice([0.06, 0.1, 0.2]),
    )


def check(scene: Scene, call: Call) -> None:
    events = [event for _, event in scene.peer.events]
    committed: dict[int, TranscriptDone] = {}
    deltas: dict[int, str] = defaultdict(str)
    open_reply: str | None = None
    over: set[str] = set()
    heard: list[str] = []
    for event in events:
        match event:
            case TranscriptDelta():
                assert event.turn not in committed, "words after the turn was over"
                deltas[event.turn] += event.text
            case TranscriptDone():
                assert event.turn not in committed, "a turn is committed once"
                committed[event.turn] = event
            case ReplyStarted():
                assert open_reply is None, "two replies at once"
                assert event.reply_id not in over
                open_reply = event.reply_id
            case ReplyAudio() | ReplyText():
                assert event.reply_id == open_reply, "audio or text of a reply that is not open"
                assert event.turn == 0 or event.revision == committed[event.turn].revision, "a stale revision"
            case ReplyDone():
                assert event.reply_id == open_reply
                assert event.text.startswith(event.heard)
                over.add(event.reply_id)
                open_reply = None
                if event.heard.strip():
                    heard.append(event.heard)
            case ClearPlayback():
                assert event.reply_id == open_reply
            case _:
                pass
    for turn, done in committed.items():
        assert deltas[turn].strip() == done.text, "committed words were taken back"
    messages = call.dialogue.messages()
    assert [m.text for m in messages if m.role == "user"] == [d.text for d in committed.values() if d.text]
    assert [m.text for m in messages if m.role == "assistant"] == heard
    assert isinstance(events[-1], CallEnded)
    for record in scene.records:
        if record.turn in committed and record.reply_text and record.status == "completed":
            assert record.reply_text == Parrot()._reply(committed[record.turn].text)
            assert record.revision == committed[record.turn].revision
    answered = [record.turn for record in scene.records if record.turn in committed]
    assert sorted(answered) == sorted(turn for turn, done in committed.items() if done.text)
    assert len([e for e in events if isinstance(e, SpeechStopped)]) >= len(committed)
    assert scene.language.open_conversations == 0


@pytest.mark.timeout(180)
def test_no_schedule_leaks_a_stale_revision() -> None:
    for seed in range(SCHEDULES):
        scene = scene_of(seed)
        try:
            call = run(scene.play())
            check(scene, call)
        except BaseException as error:
            error.add_note(f"schedule {seed}")
            raise
