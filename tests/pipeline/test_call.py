"""Whole calls in virtual time: every order of soft end, going on, commit, interruption, failure, hang-up."""

from __future__ import annotations

from itertools import pairwise

import pytest

from fixtures.fakes import (
    HELLO,
    Detector,
    Parrot,
    RecordingPeer,
    Scene,
    SlowReader,
    agent,
    interrupted,
    question,
)
from fixtures.virtual_time import run
from pipeline.agent import Interruptions, Silence
from pipeline.events import (
    CallEnded,
    CallFailed,
    ClearPlayback,
    PausePlayback,
    ReplyAudio,
    ReplyDone,
    ReplyStarted,
    ReplyText,
    ResumePlayback,
    SpeechStarted,
    SpeechStopped,
    TranscriptDelta,
    TranscriptDone,
    TurnLogged,
)
from pipeline.hearing.interruption import AGREEMENTS
from pipeline.telemetry.timeline import MARKS


def test_a_question_is_answered_in_order() -> None:
    scene = question()
    run(scene.play())
    order = [
        type(e) for e in scene.peer.of(SpeechStarted, SpeechStopped, TranscriptDone, ReplyStarted, ReplyDone)
    ]
    assert order == [SpeechStarted, SpeechStopped, TranscriptDone, ReplyStarted, ReplyDone]
    assert scene.peer.of(TranscriptDone)[0].text == "What time is it?"
    assert "".join(e.text for e in scene.peer.of(TranscriptDelta)) == " What time is it?"
    done = scene.peer.of(ReplyDone)[0]
    assert (done.status, done.text, done.heard) == (
        "completed",
        "You said What time is it. Is there more?",
        "You said What time is it. Is there more?",
    )
    assert "".join(e.text for e in scene.peer.of(ReplyText)) == done.text
    assert scene.peer.audio_seconds() == pytest.approx(len(done.text) * 0.06, abs=0.02)


def test_the_answer_is_ready_when_the_turn_ends() -> None:
    unsure = Detector(0.6)  # some more silence is asked for: time to draft
    drafted, waiting = question(detector=unsure), question(detector=unsure, speculate=False)
    run(drafted.play())
    run(waiting.play())
    fast, slow = drafted.records[0], waiting.records[0]
    assert fast.durations["after_commit"] == 0
    assert fast.marks["llm_first_sentence"] < fast.marks["commit"]
    assert fast.draft_fate == "whole"
    assert slow.marks["asr_final"] > slow.marks["commit"]
    assert slow.draft_fate == "none"
    assert fast.durations["voice_to_voice"] < slow.durations["voice_to_voice"]
    assert fast.reply_text == slow.reply_text


def test_marks_are_anchored_on_the_audio() -> None:
    scene = question(packet_seconds=0.2)
    run(scene.play())
    marks = scene.records[0].marks
    assert marks["speech_end"] == 0
    assert marks["speech_start"] == pytest.approx(-1000, abs=65)
    assert list(marks) == [name for name in MARKS if name in marks]
    for order in (
        ("speech_start", "speech_end", "soft_end", "commit", "audio_sent", "reply_end"),
        ("speech_end", "asr_final", "llm_start", "llm_first_token", "llm_first_sentence"),
        ("llm_first_sentence", "tts_start", "tts_first_audio", "audio_sent"),
    ):
        assert [marks[name] for name in order] == sorted(marks[name] for name in order), marks


def test_a_line_that_catches_up_moves_both_ends_of_the_speech() -> None:
    """It stalls for a second before the speech and has made it good at its end."""
    scene = question(late_seconds=lambda at: max(0.0, 1.0 - (at - 0.5) / 1.5) if at > 0.5 else 0.0)
    run(scene.play())
    assert scene.records[0].marks["speech_start"] == pytest.approx(-1000, abs=65)


def test_no_word_of_a_draft_leaves_before_commit() -> None:
    scene = question(detector=Detector(0.0), seconds=4.0)
    run(scene.play())
    commits = scene.peer.times(SpeechStopped)
    said = scene.peer.times(ReplyAudio, ReplyText, ReplyStarted)
    assert scene.language.prompts, "the reply was drafted"
    assert all(at >= commits[0] for at in said) if commits else not said


def going_on() -> Scene:
    """The caller pauses after "My order is" long enough for a draft, then goes on."""
    return Scene(
        speech=[(1.0, 2.0), (2.45, 3.2)],
        words=[(" My", 1.2), (" order", 1.6), (" is", 2.0), (" late.", 3.2)],
        detector=Detector(0.1, 0.99),
        seconds=10.0,
    )


def test_going_on_refutes_the_draft_and_uses_it() -> None:
    scene = going_on()
    run(scene.play())
    assert [p[-1].text for p in scene.language.prompts] == ["My order is", "My order is late."]
    assert scene.language.drafts[0] == ()
    assert scene.language.drafts[1], "the refuted reply is the draft of the next"
    assert [e.text for e in scene.peer.of(TranscriptDone)] == ["My order is late."]
    record = scene.records[0]
    assert (record.revision, record.revisions) == (2, 2)
    assert len(scene.records) == 1
    assert "late" in record.reply_text
    assert all(e.revision == 2 for e in scene.peer.of(ReplyAudio, ReplyText, ReplyDone))


def test_unchanged_sentences_are_not_synthesised_again() -> None:
    scene = going_on()
    scene.language = Parrot(lambda text: f"Sure. I heard {text}")
    scene.stage_seconds = {"tts": 0.001}
    run(scene.play())
    assert scene.voice.said.count("Sure. ") == 1
    assert scene.records[0].heard_text == "Sure. I heard My order is late."


def test_real_words_stop_the_agent_and_only_the_heard_text_stays() -> None:
    scene = interrupted([(" No,", 3.5), (" tomorrow", 3.8), (" please.", 4.2)], (3.2, 4.2))
    run(scene.play())
    first, second = scene.records
    assert first.status == "interrupted"
    assert first.interrupted
    assert "interrupted" in first.marks
    assert first.reply_text.startswith(first.heard_text)
    assert 0 < len(first.heard_text) < len(first.reply_text)
    assert second.caller_text == "No, tomorrow please."
    prompt = scene.language.prompts[-1]
    assert [m.text for m in prompt if m.role == "assistant"] == [first.heard_text]
    paused = scene.peer.times(PausePlayback)[0]
    assert paused - 3.2 <= 0.15
    assert not [t for t in scene.peer.times(ReplyAudio) if paused < t < second_answer(scene)]


def second_answer(scene: Scene) -> float:
    return scene.peer.times(ReplyStarted)[-1]


def test_an_answer_cut_off_before_it_was_heard_is_the_next_ones_draft() -> None:
    scene = question(
        speech=[(1.0, 2.0), (2.6, 3.4)],
        words=[*HELLO, (" In", 2.9), (" Rome.", 3.4)],
        stage_seconds={"llm": 0.09},
        seconds=14.0,
    )
    run(scene.play())
    assert scene.records[0].heard_text == ""
    assert scene.language.drafts[-1], "what was generated before the interruption is offered"
    assert [m.text for m in scene.language.prompts[-1] if m.role == "user"] == [
        "What time is it?",
        "In Rome.",
    ]


def test_the_heard_text_is_what_was_played() -> None:
    scene = interrupted([(" Stop", 3.5), (" that.", 3.8)], (3.2, 3.8))
    run(scene.play())
    started = scene.peer.times(ReplyAudio)[0]
    paused = scene.peer.times(PausePlayback)[0]
    heard = scene.records[0].heard_text
    assert len(heard) * 0.06 == pytest.approx(paused - started, abs=0.45)


@pytest.mark.parametrize("holds_playback", [True, False])
@pytest.mark.parametrize("text", [[(" Mm-hm.", 3.5)], []])
def test_listening_noises_do_not_stop_the_agent(text: list[tuple[str, float]], holds_playback: bool) -> None:
    scene = interrupted(text, (3.2, 3.6), peer=RecordingPeer(holds_playback=holds_playback))
    run(scene.play())
    (record,) = scene.records
    assert record.status == "completed"
    assert record.heard_text == record.reply_text
    assert record.extra["false_interruptions"] == 1
    assert scene.recogniser.expected_alone == [(), AGREEMENTS], "listening noises, only over the agent"
    assert len(scene.peer.of(TranscriptDone)) == 1
    offsets = [(round(e.offset_ms), round(e.samples.size / e.rate * 1000)) for e in scene.peer.of(ReplyAudio)]
    if holds_playback:
        paused, resumed = scene.peer.times(PausePlayback)[0], scene.peer.times(ResumePlayback)[0]
        assert all(a + size == b for (a, size), (b, _) in pairwise(offsets))
    else:
        paused = scene.peer.times(ClearPlayback)[0]
        resumed = next(t for t in scene.peer.times(ReplyAudio) if t > paused)
        backwards = [b - (a + size) for (a, size), (b, _) in pairwise(offsets) if b != a + size]
        assert len(backwards) == 1
        assert -400 < backwards[0] < 0
    assert resumed - 3.6 <= 1.0


def test_the_agents_own_voice_is_no_interruption() -> None:
    echo = [(" you", 3.3), (" said", 3.5), (" what", 3.7), (" time", 3.9)]
    scene = interrupted(echo, (3.1, 3.9))
    run(scene.play())
    assert [r.status for r in scene.records] == ["completed"]


def test_interruptions_can_be_off() -> None:
    scene = interrupted(
        [(" No,", 3.5), (" tomorrow", 3.8)], (3.2, 3.8), agent=agent(interruptions=Interruptions(mode="off"))
    )
    run(scene.play())
    assert scene.records[0].status == "completed"
    assert not scene.peer.of(PausePlayback, ClearPlayback)


def test_interruptions_can_be_at_once() -> None:
    scene = interrupted([], (3.2, 3.6), agent=agent(interruptions=Interruptions(mode="at_once")))
    run(scene.play())
    assert scene.records[0].status == "interrupted"
    assert scene.peer.times(ClearPlayback)[0] - 3.2 <= 0.2


def test_long_noise_over_the_agent_lets_it_go_on() -> None:
    scene = question(speech=[(1.0, 2.0), (3.2, 9.0)], seconds=14.0)
    run(scene.play())
    resumed = scene.peer.times(ResumePlayback)[0]
    assert resumed < 6.8
    assert scene.records[0].status == "completed"


@pytest.mark.parametrize("seconds", [1.5, 2.1, 2.3, 3.0, 4.0])
def test_hanging_up_at_any_time_ends_everything_and_writes_the_row(seconds: float) -> None:
    scene = question(seconds=seconds)
    run(scene.play())
    assert scene.peer.of(CallEnded)[-1].reason == "hang_up"
    assert scene.language.open_conversations == 0
    (record,) = scene.records
    assert record.status in ("hang_up", "interrupted")


@pytest.mark.parametrize("gone", [1.3, 2.2, 2.6, 3.4])
def test_a_vanished_peer_ends_the_call_and_the_row_is_written(gone: float) -> None:
    peer = RecordingPeer()
    peer.gone_at = gone
    scene = question(peer=peer, actions=[(gone, lambda call: call.hang_up("peer_gone"))])
    run(scene.play())
    assert len(scene.records) == 1


def test_a_caller_who_never_speaks_is_asked_and_then_left() -> None:
    silence = Silence(after_seconds=5, text="Are you there?", times=2, farewell="Goodbye.")
    scene = Scene(speech=[], words=[], seconds=60, agent=agent(silence=silence))
    run(scene.play())
    assert scene.voice.said == ["Are you there?", "Are you there?", "Goodbye."]
    assert scene.peer.of(CallEnded)[0].reason == "silence"
    assert not scene.records


def test_a_goodbye_ends_the_call_after_the_answer() -> None:
    scene = question(words=[(" Thanks,", 1.5), (" bye.", 2.0)], seconds=20.0)
    run(scene.play())
    assert scene.peer.of(CallEnded)[0].reason == "goodbye"
    assert scene.records[0].status == "completed"


def test_the_greeting_comes_first_and_is_remembered() -> None:
    scene = question(
        speech=[(3.0, 4.0)], words=[(t, at + 2) for t, at in HELLO], agent=agent(greeting="Hello there.")
    )
    run(scene.play())
    assert scene.voice.said[0] == "Hello there."
    assert scene.peer.of(ReplyDone)[0].turn == 0
    assert scene.language.prompts[0][1].text == "Hello there."


def test_a_long_call_is_ended() -> None:
    scene = question(agent=agent(max_call_seconds=5.0), seconds=30.0)
    run(scene.play())
    assert scene.peer.of(CallEnded)[0].reason == "max_length"


@pytest.mark.parametrize("stage", ["asr", "llm", "tts"])
def test_a_failing_stage_is_named_and_never_silence(stage: str) -> None:
    scene = question(seconds=12.0)
    error = RuntimeError("broken weights")
    if stage == "llm":
        scene.language.failing = error
    elif stage == "tts":
        scene.voice.failing = error
    else:
        scene.actions = [(1.2, lambda call: setattr(scene.recogniser, "failing", error))]
    run(scene.play())
    failed = scene.peer.of(CallFailed)[0]
    assert (failed.stage, failed.message) == (stage, "broken weights")
    if stage == "llm":
        assert "Sorry" in scene.voice.said[0]
    else:
        assert scene.peer.of(CallEnded)[0].reason == "error"


def test_a_reply_cut_by_the_length_limit_is_said_to_be_cut() -> None:
    scene = question()
    scene.language.reason = "length"
    run(scene.play())
    assert scene.records[0].status == "cut"
    assert scene.peer.of(ReplyDone)[0].status == "cut"
    assert scene.records[0].heard_text == scene.records[0].reply_text


def test_broken_arithmetic_ends_the_call_and_names_the_stage() -> None:
    scene = question()
    scene.language.failing = ArithmeticError("logits are not finite")
    run(scene.play())
    assert scene.peer.of(CallFailed)[0].stage == "llm"
    assert scene.peer.of(CallEnded)[0].reason == "error"


def test_a_typed_turn_is_answered() -> None:
    scene = Scene(
        speech=[], words=[], seconds=6.0, actions=[(1.0, lambda call: call.say_text("What time is it?"))]
    )
    run(scene.play())
    assert scene.records[0].caller_text == "What time is it?"
    assert scene.records[0].marks["commit"] == 0
    assert "speech_end" not in scene.records[0].marks


def test_keys_are_a_turn() -> None:
    press = [(1.0 + i / 5, lambda call, d=d: call.digit(d)) for i, d in enumerate("123")]
    scene = Scene(speech=[], words=[], seconds=10.0, actions=press)  # type: ignore[arg-type]
    run(scene.play())
    assert scene.records[0].caller_text == "(on the keypad) 1 2 3"


def test_the_client_may_end_the_turn() -> None:
    scene = question(speech=[(1.0, 9.0)], actions=[(2.2, lambda call: call.respond())], seconds=8.0)
    run(scene.play())
    assert scene.peer.times(SpeechStopped)[0] == pytest.approx(2.2, abs=0.05)
    assert scene.records[0].caller_text == "What time is it?"


def test_the_client_may_silence_the_agent() -> None:
    scene = question(actions=[(3.0, lambda call: call.cancel_reply())])
    run(scene.play())
    assert scene.records[0].status == "interrupted"


def test_a_peer_that_stops_sending_after_speech_is_still_answered() -> None:
    scene = question(sends_until=2.25, detector=Detector(0.7))
    run(scene.play())
    assert scene.records[0].status == "completed"
    assert scene.records[0].durations["endpoint"] > 300


def test_the_logged_record_is_what_the_peer_gets() -> None:
    scene = question()
    run(scene.play())
    assert [e.record for e in scene.peer.of(TurnLogged)] == [r.as_dict() for r in scene.records]


def test_two_turns_are_numbered_and_remembered() -> None:
    scene = question(
        speech=[(1.0, 2.0), (7.0, 8.0)],
        words=[*HELLO, (" And", 7.4), (" tomorrow?", 8.0)],
        seconds=14.0,
        voice=SlowReader(),
    )
    run(scene.play())
    assert [r.turn for r in scene.records] == [1, 2]
    assert [m.role for m in scene.language.prompts[-1]] == ["system", "user", "assistant", "user"]
