"""The realtime protocol's events, both ways, without a socket."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from pipeline import events
from pipeline.agent import Agent
from pipeline.audio import pcm16_to_float
from tests.web.scripted import spoken_reply
from web.paced_audio import RealTimePace
from web.realtime.client_events import (
    AudioAppend,
    BadEvent,
    ItemCreate,
    decode_audio,
    decode_event,
    typed_text,
)
from web.realtime.client_events import SessionUpdate as Update
from web.realtime.server_events import Translator
from web.realtime.session import Session

LONG = "e" * 513


def refused(message: str | bytes) -> BadEvent:
    with pytest.raises(BadEvent) as caught:
        decode_event(message)
    return caught.value


@pytest.mark.parametrize(
    ("message", "code", "param", "event_id"),
    [
        ("{", "invalid_json", None, None),
        ("", "invalid_json", None, None),
        ("[" * 5000, "invalid_json", None, None),
        ("[]", "invalid_event", None, None),
        ('"hello"', "invalid_event", None, None),
        (b"\x00\x01", "binary_message", None, None),
        ("{}", "missing_type", "type", None),
        ('{"type": "no.such.event", "event_id": "e7"}', "unknown_event", "type", "e7"),
        ('{"type": 5, "event_id": 6}', "unknown_event", "type", None),
        ('{"type": "input_audio_buffer.append", "event_id": "e8"}', "invalid_value", "audio", "e8"),
        ('{"type": "input_audio_buffer.append", "audio": 5}', "invalid_value", "audio", None),
        (
            '{"type": "conversation.item.truncate", "item_id": "a", "audio_end_ms": -1}',
            "invalid_value",
            "audio_end_ms",
            None,
        ),
        (
            '{"type": "response.create", "event_id": "' + "e" * 513 + '"}',
            "invalid_value",
            "event_id",
            "e" * 513,
        ),
        (
            '{"type": "rejoinder.playback", "item_id": "a", "played_ms": 1e999}',
            "invalid_value",
            "played_ms",
            None,
        ),
        (
            '{"type": "conversation.item.create", "item": {"type": "message", "role": "system"}}',
            "invalid_value",
            "item.role",
            None,
        ),
        (
            '{"type": "session.update", "session": {"audio": {"input": {"format": {"rate": "fast"}}}}}',
            "invalid_value",
            "session.audio.input.format.rate",
            None,
        ),
    ],
)
def test_a_wrong_message_says_what_is_wrong(
    message: str | bytes, code: str, param: str | None, event_id: str | None
) -> None:
    bad = refused(message)
    assert (bad.code, bad.param, bad.event_id) == (code, param, event_id)
    assert bad.message


def test_fields_that_are_not_ours_are_no_error() -> None:
    message = '{"type": "response.create", "response": {"instructions": "Sing."}, "extra": 1}'
    assert decode_event(message).type == "response.create"


@pytest.mark.parametrize("audio", ["not base64!", "YWJ", "YW Jj", "\u00e9\u00e9\u00e9\u00e9"])
def test_audio_that_is_not_base64_is_refused(audio: str) -> None:
    with pytest.raises(BadEvent) as caught:
        decode_audio(AudioAppend(type="input_audio_buffer.append", audio=audio, event_id="e1"))
    assert (caught.value.code, caught.value.event_id) == ("invalid_base64", "e1")


def test_typed_text_is_joined_and_other_content_is_refused() -> None:
    def create(*parts: dict[str, Any]) -> ItemCreate:
        item = {"type": "message", "role": "user", "content": list(parts)}
        return ItemCreate.model_validate({"type": "conversation.item.create", "item": item})

    two = create({"type": "input_text", "text": "Hello,"}, {"type": "input_text", "text": "are you open?"})
    assert typed_text(two) == "Hello, are you open?"
    with pytest.raises(BadEvent, match="input_audio_buffer"):
        typed_text(create({"type": "input_audio", "audio": "AAAA"}))


def update(**audio: Any) -> Update:
    return Update.model_validate({"type": "session.update", "event_id": "u1", "session": {"audio": audio}})


def pcm(rate: int | None) -> dict[str, Any]:
    return {"format": {"type": "audio/pcm", "rate": rate}}


def test_a_client_chooses_its_formats_and_sees_what_is_in_force() -> None:
    session = Session()
    session.update(update(input=pcm(16_000), output=pcm(8_000)))
    audio = session.describe(Agent(name="front desk", persona="x"))["audio"]
    assert audio["input"]["format"] == {"type": "audio/pcm", "rate": 16_000}
    assert audio["output"]["format"] == {"type": "audio/pcm", "rate": 8_000}
    session.update(update(input=pcm(None)))
    assert (session.input.rate, session.output.rate) == (24_000, 8_000)


@pytest.mark.parametrize("name", ["audio/pcmu", "audio/pcma"])
def test_the_telephones_formats_are_there(name: str) -> None:
    session = Session()
    session.update(update(input={"format": {"type": name}}, output={"format": {"type": name}}))
    assert session.describe(Agent(name="x", persona="x"))["audio"]["input"]["format"] == {"type": name}
    wires = translated(session, *spoken_reply())
    audio = b"".join(
        base64.b64decode(wire["delta"]) for wire in wires if wire["type"].endswith("audio.delta")
    )
    assert len(audio) == pytest.approx(640, abs=2)  # 80 ms at 8 kHz, a byte each
    assert np.median(session.input.decode(audio)) == pytest.approx(0.25, abs=0.01)


def test_a_format_that_cannot_be_had_changes_nothing() -> None:
    session = Session()
    with pytest.raises(BadEvent, match="12345 Hz") as caught:
        session.update(update(input=pcm(16_000), output=pcm(12_345)))
    assert (caught.value.code, caught.value.param) == ("unsupported_rate", "session.audio.output.format.rate")
    assert (session.input.rate, session.output.rate) == (24_000, 24_000)
    with pytest.raises(BadEvent, match="audio/opus") as caught:
        session.update(update(input={"format": {"type": "audio/opus"}}))
    assert caught.value.code == "unsupported_format"


def translated(session: Session, *said: events.CallEvent) -> list[dict[str, Any]]:
    translator = Translator(session)
    return [wire for event in said for wire in translator.translate(event)]


def test_a_caller_turn_on_the_wire() -> None:
    wires = translated(
        Session(),
        events.SpeechStarted(1, 1, 500),
        events.TranscriptDelta(1, 1, " Are you"),
        events.SpeechStarted(1, 2, 1900),
        events.TranscriptDelta(1, 2, " open?"),
        events.SpeechStopped(1, 2, 2500),
        events.TranscriptDone(1, 2, "Are you open?"),
    )
    kind = "conversation.item.input_audio_transcription"
    assert [wire["type"] for wire in wires] == [
        "input_audio_buffer.speech_started",
        f"{kind}.delta",
        "input_audio_buffer.speech_started",
        f"{kind}.delta",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        f"{kind}.completed",
        "conversation.item.done",
    ]
    assert {wire["item_id"] for wire in wires if "item_id" in wire} == {"item_turn_1"}
    assert "".join(wire["delta"] for wire in wires if "delta" in wire) == " Are you open?"
    assert wires[7]["transcript"] == "Are you open?"
    assert wires[7]["usage"] == {"type": "duration", "seconds": 2.0}
    assert len({wire["event_id"] for wire in wires}) == len(wires)


def test_speech_that_was_no_turn_is_dismissed_by_its_item() -> None:
    started, dismissed, *later = translated(
        Session(),
        events.SpeechStarted(1, 1, 500),
        events.SpeechDismissed(1, 1, 900),
        events.SpeechStarted(1, 2, 2000),
        events.SpeechStopped(1, 2, 2500),
        events.TranscriptDone(1, 2, "Yes."),
    )
    assert dismissed["type"] == "rejoinder.speech_dismissed"
    assert (dismissed["item_id"], dismissed["audio_end_ms"]) == (started["item_id"], 900)
    usage = next(wire["usage"] for wire in later if "usage" in wire)
    assert usage["seconds"] == 0.5, "counted from where the turn itself began"


@pytest.mark.parametrize(("rate_in", "rate_out"), [(24_000, 24_000), (22_050, 24_000), (24_000, 8_000)])
def test_a_reply_on_the_wire_carries_all_its_audio(rate_in: int, rate_out: int) -> None:
    session = Session()
    session.update(update(output=pcm(rate_out)))
    wires = translated(session, *spoken_reply(rate=rate_in))
    kinds = [wire["type"] for wire in wires if wire["type"] != "response.output_audio.delta"]
    assert kinds == [
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
        "response.output_audio_transcript.delta",
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
    ]
    audio = b"".join(
        base64.b64decode(wire["delta"]) for wire in wires if wire["type"].endswith("audio.delta")
    )
    samples = pcm16_to_float(audio)
    assert len(samples) == pytest.approx(0.08 * rate_out, abs=2)
    assert np.median(samples) == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize(
    ("status", "by_client", "expected"),
    [
        ("completed", False, ("completed", None)),
        ("interrupted", False, ("cancelled", "turn_detected")),
        ("interrupted", True, ("cancelled", "client_cancelled")),
        ("cut", False, ("incomplete", "max_output_tokens")),
        ("failed", False, ("failed", None)),
    ],
)
def test_how_a_reply_ended(status: str, by_client: bool, expected: tuple[str, str | None]) -> None:
    translator = Translator(Session())
    translator.translate(events.ReplyStarted(1, 1, "r1"))
    if by_client:
        translator.cancelled_by_client.add("r1")
    done = events.ReplyDone(1, 1, "r1", status, "We close at six.", "We close")
    answer = translator.translate(done)[-1]["response"]
    assert (answer["status"], answer["status_details"]["reason"]) == expected
    assert answer["output"][0]["content"] == [{"type": "output_audio", "transcript": "We close at six."}]
    assert answer["rejoinder"] == {"turn": 1, "heard": "We close"}


def test_an_interrupted_reply_leaves_nothing_in_the_next_one() -> None:
    session = Session()
    session.update(update(output=pcm(16_000)))
    translator = Translator(session)
    loud = events.ReplyAudio(1, 1, "r1", np.full(960, 1.0, np.float32), 24_000, 0.0)
    quiet = events.ReplyAudio(2, 1, "r2", np.zeros(960, np.float32), 24_000, 0.0)
    translator.translate(loud)
    ending = translator.translate(events.ReplyDone(1, 1, "r1", "interrupted", "Yes.", ""))
    assert all(wire["type"] != "response.output_audio.delta" for wire in ending)
    (wire,) = translator.translate(quiet)
    assert not np.any(pcm16_to_float(base64.b64decode(wire["delta"])))


def test_our_own_events() -> None:
    wires = translated(
        Session(),
        events.PausePlayback(1, 1, "r1"),
        events.ResumePlayback(1, 1, "r1"),
        events.ClearPlayback(1, 1, "r1"),
        events.StageProgress(1, 2, "asr_final", 310.5),
        events.TurnLogged(1, 2, {"marks": {"commit": 400.0}}),
        events.ReplyMark(1, 1, "r1", "call.1.1.r1.500"),
        events.CallFailed(1, 1, "llm", "out of memory"),
        events.CallEnded(1, 1, "goodbye"),
    )
    plain = [{name: value for name, value in wire.items() if name != "event_id"} for wire in wires]
    place = {"response_id": "resp_r1", "item_id": "item_r1"}
    error = {"type": "server_error", "code": "llm_failed", "message": "out of memory"}
    assert plain == [
        {"type": "rejoinder.playback.pause", **place},
        {"type": "rejoinder.playback.resume", **place},
        {"type": "rejoinder.playback.clear", **place},
        {"type": "rejoinder.stage", "turn": 1, "revision": 2, "mark": "asr_final", "ms": 310.5},
        {"type": "rejoinder.turn", "turn": 1, "revision": 2, "record": {"marks": {"commit": 400.0}}},
        {"type": "error", "error": error | {"param": None, "event_id": None}},
        {"type": "rejoinder.call.ended", "reason": "goodbye"},
    ]


def test_audio_is_held_to_the_pace_of_speech() -> None:
    pace = RealTimePace(lead_seconds=0.5, stall_seconds=5.0)
    now, waited = 100.0, 0.0
    for _ in range(50):  # five seconds at once
        wait = pace.wait_before(0.1, now)
        now, waited = now + wait, waited + wait
        pace.passed(0.1, now)
    assert waited == pytest.approx(4.5)


def test_audio_in_real_time_and_after_a_stall_does_not_wait() -> None:
    pace = RealTimePace(lead_seconds=0.5, stall_seconds=5.0)

    def wait(now: float) -> float:
        waited = pace.wait_before(0.1, now)
        pace.passed(0.1, now + waited)
        return waited

    assert all(wait(100 + number / 10) == 0 for number in range(50))
    assert all(wait(108.0) == 0 for _ in range(30))  # three seconds late, delivered at once
