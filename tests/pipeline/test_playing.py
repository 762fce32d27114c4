"""What was heard of an answer, and when: a peer's reports of its playing, and a hold phrase before it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fixtures.fakes import CHARACTER_SECONDS, Scene, agent, interrupted, question
from fixtures.virtual_time import run
from pipeline.call import Call
from pipeline.events import CallFailed, PausePlayback, ReplyAudio, ResumePlayback


def slow_answer(**changes: object) -> Scene:
    holding = agent(hold_phrase="One moment.", hold_after_ms=1000)
    return question(stage_seconds={"llm": 0.6}, agent=holding, seconds=20.0, **changes)


def test_a_slow_model_is_bridged_by_a_hold_phrase() -> None:
    scene = slow_answer()
    run(scene.play())
    assert scene.voice.said[:1] == ["One moment."]
    assert scene.records[0].heard_text == "You said What time is it. Is there more?"
    assert scene.records[0].extra["hold_phrase"]
    assert scene.records[0].marks["audio_sent"] >= scene.records[0].marks["tts_first_audio"]


def report(played_ms: float) -> Callable[[Call], None]:
    return lambda call: call.playback(call.player.answer.reply.id, played_ms)  # type: ignore[union-attr]


def test_an_answer_is_not_heard_before_it_was_sent() -> None:
    silent = question()
    run(silent.play())
    sent = silent.peer.times(ReplyAudio)[0]
    early = question(actions=[(sent + 0.3, report(340.0))])  # as of a frame that only begins to be played
    run(early.play())
    marks = early.records[0].marks
    assert marks["audio_heard"] == marks["audio_sent"]


def test_a_hold_phrase_is_not_the_answer_that_was_heard() -> None:
    silent = slow_answer()
    run(silent.play())
    phrase_ms = len("One moment.") * CHARACTER_SECONDS * 1000
    sent = [(at, event.offset_ms) for at, event in silent.peer.events if isinstance(event, ReplyAudio)]
    answer = next(at for at, offset_ms in sent if offset_ms >= phrase_ms)

    reports = [
        (sent[0][0] + 0.3, report(300.0)),
        (answer - 0.1, report(phrase_ms + 1.0)),  # all of the phrase, in the peer's arithmetic
        (answer + 0.2, report(phrase_ms + 200.0)),
    ]
    telling = slow_answer(actions=reports)
    run(telling.play())
    marks = telling.records[0].marks
    assert marks["audio_heard"] == pytest.approx(marks["audio_sent"], abs=1)


def test_a_pause_before_the_first_report_does_not_make_the_answer_heard_late() -> None:
    silent = interrupted([(" Mm-hm.", 3.5)], (3.2, 3.6))
    run(silent.play())
    began, paused = silent.peer.times(ReplyAudio)[0], silent.peer.times(PausePlayback)[0]
    resumed = silent.peer.times(ResumePlayback)[0]
    played_ms = (paused - began + 0.2) * 1000
    telling = interrupted([(" Mm-hm.", 3.5)], (3.2, 3.6), actions=[(resumed + 0.2, report(played_ms))])
    run(telling.play())
    marks = telling.records[0].marks
    assert marks["audio_heard"] == pytest.approx(marks["audio_sent"], abs=1)


def test_a_voice_that_fails_at_the_hold_phrase_is_named() -> None:
    scene = slow_answer()
    scene.voice.failing = RuntimeError("broken weights")
    run(scene.play())
    failed = scene.peer.of(CallFailed)[0]
    assert (failed.stage, failed.message) == ("tts", "broken weights")
    assert scene.voice.said == []
