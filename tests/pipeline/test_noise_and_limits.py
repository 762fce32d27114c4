"""Callers who never stop or only cough, noise that goes on, and reports that come late; in virtual time."""

from __future__ import annotations

import numpy as np
import pytest

from fixtures.fakes import Detector, RecordingPeer, Scene, agent
from fixtures.speech import RATE
from fixtures.virtual_time import run
from pipeline.agent import Patience, Silence
from pipeline.call import Call
from pipeline.dialogue import Dialogue
from pipeline.events import (
    CallEnded,
    PausePlayback,
    PeerGone,
    ReplyDone,
    ReplyStarted,
    SpeechDismissed,
    SpeechStarted,
    SpeechStopped,
    TranscriptDone,
)
from pipeline.hearing.microphone import Microphone
from pipeline.speaking.outbox import Outbox

QUESTION = [(" What", 1.2), (" time", 1.5), (" is", 1.7), (" it?", 2.0)]


def speech_events(scene: Scene) -> list[type]:
    return [type(event) for event in scene.peer.of(SpeechStarted, SpeechDismissed, SpeechStopped)]


def test_a_cough_is_dismissed_and_is_no_turn() -> None:
    scene = Scene(speech=[(1.0, 1.3)], words=[], seconds=5.0)
    run(scene.play())
    assert speech_events(scene) == [SpeechStarted, SpeechDismissed]
    assert scene.records == []
    assert not scene.peer.of(ReplyStarted, TranscriptDone)


def test_speech_after_a_cough_is_the_turn() -> None:
    scene = Scene(speech=[(0.2, 0.4), (1.0, 2.0)], words=QUESTION, seconds=9.0)
    run(scene.play())
    assert speech_events(scene) == [SpeechStarted, SpeechDismissed, SpeechStarted, SpeechStopped]
    assert [event.text for event in scene.peer.of(TranscriptDone)] == ["What time is it?"]
    record = scene.records[0].as_dict()
    assert (record["turn"], record["revisions"]) == (1, 1), "the caller did not go on after a pause"


def test_a_murmur_over_the_agent_is_never_announced() -> None:
    scene = Scene(speech=[(1.0, 2.0), (3.2, 3.5)], words=[*QUESTION, (" mm-hm", 3.5)], seconds=12.0)
    run(scene.play())
    assert scene.peer.of(PausePlayback)
    assert speech_events(scene) == [SpeechStarted, SpeechStopped]
    assert scene.records[0].status == "completed"


@pytest.mark.parametrize(
    ("over", "statuses"),
    [
        ([], ["completed"]),
        ([(" mm-hm", 3.5)], ["completed"]),
        ([(" No,", 3.35), (" wait.", 3.5)], ["interrupted", "completed"]),
    ],
)
def test_a_moment_of_speech_over_the_agent_is_judged_without_drafting_too(
    over: list[tuple[str, float]], statuses: list[str]
) -> None:
    scene = Scene(speech=[(1.0, 2.0), (3.2, 3.5)], words=QUESTION + over, seconds=12.0, speculate=False)
    run(scene.play())
    assert [record.status for record in scene.records] == statuses
    assert all(record.draft_fate == "none" for record in scene.records)


def test_what_a_typed_message_replaces_is_dismissed() -> None:
    typed = (2.2, lambda call: call.say_text("Where are you?"))
    scene = Scene(speech=[(1.0, 5.0)], words=QUESTION, seconds=9.0, actions=[typed])
    run(scene.play())
    assert speech_events(scene)[:2] == [SpeechStarted, SpeechDismissed]


def test_a_caller_who_only_coughs_is_asked_and_then_left() -> None:
    silence = Silence(after_seconds=5, text="Are you there?", times=1, farewell="Goodbye.")
    coughs = [(1.0 + 3 * n, 1.3 + 3 * n) for n in range(20)]
    scene = Scene(speech=coughs, words=[], seconds=60.0, agent=agent(silence=silence))
    run(scene.play())
    assert scene.voice.said == ["Are you there?", "Goodbye."]
    assert scene.peer.of(CallEnded)[0].reason == "silence"
    assert scene.records == []


def test_noise_that_does_not_stop_is_dismissed_and_words_through_it_are_heard() -> None:
    scene = Scene(
        speech=[(1.0, 21.0)], words=[(" Are", 19.5), (" you", 20.0), (" open?", 20.5)], seconds=30.0
    )
    run(scene.play())
    events = speech_events(scene)
    assert events[:2] == [SpeechStarted, SpeechDismissed]
    assert events[-1] is SpeechStopped
    assert [event.text for event in scene.peer.of(TranscriptDone)] == ["Are you open?"]


def test_noise_for_minutes_leaves_the_caller_in_no_turn_for_ever() -> None:
    silence = Silence(after_seconds=20, times=1)
    scene = Scene(speech=[(1.0, 300.0)], words=[], seconds=300.0, agent=agent(silence=silence))
    run(scene.play())
    assert scene.peer.of(CallEnded)[0].reason == "silence"
    assert speech_events(scene).count(SpeechStarted) == speech_events(scene).count(SpeechDismissed)


def test_a_caller_who_never_stops_is_answered_at_the_limit() -> None:
    talk = [(f" word{n}", 1.0 + 0.5 * n) for n in range(120)]
    scene = Scene(
        speech=[(1.0, 61.0)],
        words=talk,
        seconds=40.0,
        agent=agent(patience=Patience(max_turn_seconds=20)),
    )
    run(scene.play())
    record = scene.records[0]
    assert -record.marks["speech_start"] / 1000 == pytest.approx(20, abs=0.5)
    assert record.extra["cut_off"]
    assert record.caller_text.startswith("word0 word1 ")
    assert 38 <= len(record.caller_text.split()) <= 42


def monologue(until: float, seconds: float) -> Scene:
    """The caller speaks from 1.0 s on, two words a second, and turns end after 20 s."""
    talk = [(f" word{n}", 1.0 + 0.5 * n) for n in range(int(2 * (until - 1.0)))]
    limit = agent(patience=Patience(max_turn_seconds=20))
    return Scene(speech=[(1.0, until)], words=talk, seconds=seconds, agent=limit)


@pytest.mark.parametrize("until", [22.0, 24.0, 40.0, 70.0])
def test_what_is_said_behind_the_limit_is_the_next_turn(until: float) -> None:
    scene = monologue(until, until + 30.0)
    run(scene.play())
    said = " ".join(record.caller_text for record in scene.records).split()
    assert said == [f"word{n}" for n in range(int(2 * (until - 1.0)))]
    assert [record.turn for record in scene.records] == list(range(1, len(scene.records) + 1))
    assert not scene.records[-1].extra["cut_off"]
    assert scene.records[-1].status == "completed"


def test_the_answer_at_the_limit_is_said_although_the_caller_goes_on() -> None:
    scene = monologue(42.0, 60.0)
    run(scene.play())
    assert scene.records[0].status == "completed"
    assert scene.records[0].heard_text == scene.records[0].reply_text


def test_a_caller_who_stops_with_the_limit_has_said_all() -> None:
    scene = monologue(20.7, 50.0)
    run(scene.play())
    (record,) = scene.records
    assert record.extra["cut_off"]
    assert record.status == "completed"
    assert speech_events(scene) == [SpeechStarted, SpeechStopped]


@pytest.mark.parametrize("minutes", [2])
def test_a_monologue_is_one_turn(minutes: int) -> None:
    talk = [(f" word{n}", 1.5 + 0.5 * n) for n in range(120 * minutes)]
    scene = Scene(speech=[(1.0, 1.5 + 60 * minutes)], words=talk, seconds=60.0 * minutes + 10)
    run(scene.play())
    assert len(scene.records) == 1
    assert scene.records[0].caller_text.split() == [word.strip() for word, _ in talk]


def test_memory_of_the_callers_audio_stays_bounded() -> None:
    sizes = []

    def look(call: Call) -> None:
        sizes.append(call._microphone.since(0).size)

    looks = [(at, look) for at in (5.0, 30.0, 59.0)]
    scene = Scene(speech=[(1.0, 60.0)], words=[], seconds=60.0, packet_seconds=0.1, actions=looks)
    run(scene.play())
    assert len(sizes) == 3
    assert max(sizes) <= 10.2 * RATE


def test_a_machine_that_is_behind_keeps_a_bounded_backlog_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    microphone = Microphone(lambda: 0.0)
    for _ in range(200):
        microphone.hear(np.zeros(RATE // 10, np.float32))
    assert microphone.dropped_seconds == pytest.approx(10.0)
    assert "listening is behind" in caplog.text
    assert run(microphone.next()).size == 10 * RATE


def test_a_peer_that_reads_nothing_is_given_up_before_memory_is() -> None:
    outbox = Outbox(RecordingPeer(), sent=lambda event: None)
    event = TranscriptDone(1, 1, "words")
    for _ in range(2000):
        outbox.put(event)
    with pytest.raises(PeerGone, match="2000 events unread"):
        outbox.put(event)


# ---- audio that stops in the middle of speech


def test_a_client_that_sends_nothing_after_the_last_word_is_answered() -> None:
    scene = Scene(speech=[(1.0, 9.0)], words=QUESTION, seconds=9.0, sends_until=2.1)
    run(scene.play())
    assert [event.text for event in scene.peer.of(TranscriptDone)] == ["What time is it?"]
    assert scene.records[0].status == "completed"


def test_an_agent_that_paused_for_a_caller_who_is_not_heard_any_more_goes_on() -> None:
    scene = Scene(speech=[(1.0, 2.0), (3.2, 9.0)], words=QUESTION, seconds=12.0, sends_until=3.4)
    run(scene.play())
    assert scene.peer.of(PausePlayback)
    assert scene.records[0].status == "completed"


@pytest.mark.parametrize(
    ("back", "words", "turns"),
    [  # within a turn, words are timed by the audio that came through
        (2.7, [(" is", 1.9), (" late.", 2.4)], ["My order is late."]),
        (6.0, [(" It", 6.4), (" is", 6.6), (" late.", 6.9)], ["My order", "It is late."]),
    ],
)
def test_what_is_said_when_the_audio_is_back_is_heard(
    back: float, words: list[tuple[str, float]], turns: list[str]
) -> None:
    scene = Scene(
        speech=[(1.0, back + 1.0)],
        words=[(" My", 1.2), (" order", 1.4), *words],
        seconds=12.0,
        lost=(1.5, back),
    )
    run(scene.play())
    assert [event.text for event in scene.peer.of(TranscriptDone)] == turns


# ---- what the peer says it had played, after the fact


def interruption(played_ms: float, at: float = 4.0) -> Scene:
    """The agent answers at about 2.4 s, the caller stops it at about 3.6 s and is quiet from 4.6 s on; the
    report comes at `at`."""

    def report(call: Call) -> None:
        done = scene.peer.of(ReplyDone)[0]
        call.truncate(done.reply_id, played_ms)

    scene = Scene(
        speech=[(1.0, 2.0), (3.2, 4.6)],
        words=[*QUESTION, (" No,", 3.3), (" not", 3.45), (" that,", 3.6), (" wait.", 4.6)],
        seconds=12.0,
        detector=Detector(0.99, 0.5),
        actions=[(at, report)],
    )
    return scene


def agents_words(scene: Scene) -> list[str]:
    return [message.text for message in scene.language.prompts[-1] if message.role == "assistant"]


@pytest.mark.parametrize(("played_ms", "heard"), [(0.0, []), (600.0, ["You said"]), (60_000.0, None)])
def test_a_late_truncation_amends_what_was_heard(played_ms: float, heard: list[str] | None) -> None:
    scene = interruption(played_ms)
    run(scene.play())
    (done, *_) = scene.peer.of(ReplyDone)
    assert done.status == "interrupted"
    words = agents_words(scene)
    if heard is not None:
        assert words == heard
    else:  # more than was sent cannot have been played
        assert done.text.startswith(words[0])
        assert len(done.heard) <= len(words[0]) < len(done.text)


def test_a_truncation_makes_the_draft_anew() -> None:
    """It comes after the soft end: what was drafted with the old memory is not said."""
    scene = interruption(600.0, at=4.9)
    run(scene.play())
    assert agents_words(scene) == ["You said"]
    assert scene.language.drafts[-1], "the outdated reply is the draft"
    assert scene.records[-1].reply_text == "You said No, not that, wait. Is there more?"
    assert scene.records[-1].marks["llm_start"] >= 300, "the draft that was said began after the report"


def test_a_truncation_of_an_older_reply_changes_nothing() -> None:
    scene = interruption(600.0, at=7.0)
    run(scene.play())
    assert agents_words(scene) == [scene.peer.of(ReplyDone)[0].heard]


def test_the_memory_is_amended_in_place() -> None:
    dialogue = Dialogue("Be brief.")
    dialogue.caller_said("What?")
    dialogue.agent_said("We are")
    dialogue.amend_agent("We are", "We")
    assert [m.text for m in dialogue.messages()] == ["Be brief.", "What?", "We"]
    dialogue.amend_agent("We", "")
    dialogue.amend_agent("", "We are open")
    assert [m.text for m in dialogue.messages()] == ["Be brief.", "What?", "We are open"]
