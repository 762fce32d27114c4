"""Audio time and the timeline of a turn."""

from __future__ import annotations

import random

import pytest

from pipeline.audio import CALLER_RATE
from pipeline.hearing.audio_clock import AudioClock
from pipeline.telemetry.timeline import DURATIONS, MARKS, Timeline, TurnRecord


def test_positions_are_when_they_were_spoken_not_when_they_arrived() -> None:
    rng = random.Random(3)
    clock = AudioClock()
    for packet in range(500):
        spoken = 100.0 + (packet + 1) * 0.02
        clock.arrived(320, spoken + rng.choice([0.0, 0.005, 0.03, 0.2]))
    assert clock.time_of(250 * 320) == pytest.approx(105.0, abs=0.002)


def test_a_muted_sender_moves_the_anchor() -> None:
    clock = AudioClock()
    clock.arrived(CALLER_RATE, 1.0)
    clock.arrived(CALLER_RATE, 7.0)
    assert clock.time_of(2 * CALLER_RATE) == pytest.approx(7.0)


def test_a_burst_after_a_stall_pulls_the_anchor_back() -> None:
    clock = AudioClock()
    clock.arrived(CALLER_RATE, 1.0)
    for second in range(5):
        clock.arrived(CALLER_RATE, 6.0 + second * 0.001)
    assert clock.time_of(CALLER_RATE) == pytest.approx(1.0, abs=0.02)


def test_an_hour_of_a_slow_sender_does_not_drift() -> None:
    clock = AudioClock()
    for packet in range(180_000):
        clock.arrived(320, (packet + 1) * 0.02 * (1 + 50e-6))
    assert clock.time_of(180_000 * 320) == pytest.approx(3600 * (1 + 50e-6), abs=0.02)


def test_the_first_setting_of_a_mark_counts_and_is_told() -> None:
    told: list[tuple[str, float]] = []
    timeline = Timeline(lambda name, at: told.append((name, at)))
    assert timeline.mark("commit", 2.0)
    assert not timeline.mark("commit", 3.0)
    assert told == [("commit", 2.0)]
    with pytest.raises(KeyError):
        timeline.mark("comit", 2.0)


def test_marks_are_relative_to_the_end_of_speech_and_absent_when_they_did_not_happen() -> None:
    timeline = Timeline()
    for name, at in [("speech_start", 8.0), ("commit", 10.5), ("speech_end", 10.0), ("audio_sent", 10.75)]:
        timeline.mark(name, at)
    assert timeline.relative_ms() == {
        "speech_start": -2000,
        "speech_end": 0,
        "commit": 500,
        "audio_sent": 750,
    }
    assert timeline.durations_ms() == {"endpoint": 500, "after_commit": 250, "voice_to_voice": 750}


def test_a_turn_without_speech_counts_from_commit() -> None:
    timeline = Timeline()
    timeline.mark("commit", 4.0)
    timeline.mark("llm_start", 4.25)
    assert timeline.relative_ms() == {"commit": 0, "llm_start": 250}
    assert Timeline().relative_ms() == {}


def test_a_refuted_revision_takes_its_marks_with_it() -> None:
    timeline = Timeline()
    for at, name in enumerate(MARKS):
        timeline.mark(name, float(at))
    timeline.refute()
    assert timeline.at("speech_start") == 0.0
    assert all(timeline.at(name) is None for name in MARKS[1:])


def test_the_record_is_flat_plain_data() -> None:
    record = TurnRecord(
        "c", 1, 3, "a", "web", "2026-01-01T00:00:00.000+00:00", revisions=2, language={"passes": 3}
    )
    row = record.as_dict()
    assert row["passes"] == 3
    assert row["revisions"] == 2
    assert set(row) >= {
        "marks",
        "durations",
        "caller_text",
        "reply_text",
        "heard_text",
        "draft_fate",
        "status",
    }
    assert set(DURATIONS) == {
        "endpoint", "asr", "ttft", "first_sentence", "tts", "after_commit", "voice_to_voice",
    }  # fmt: skip
