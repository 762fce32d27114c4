"""Spans: the stages of a turn at the wall times of its marks, and nothing of what was said."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pipeline.telemetry.tracing import Tracing, TracingUnavailable

STARTED = datetime(2026, 1, 2, 3, 4, 5, 250_000, tzinfo=UTC)
RECORD: dict[str, Any] = {
    "call_id": "call-1",
    "turn": 3,
    "revision": 2,
    "agent": "receptionist",
    "origin": "web",
    "status": "interrupted",
    "started_at": STARTED.isoformat(timespec="milliseconds"),
    "marks": {
        "speech_start": -2000.0,
        "speech_end": 0.0,
        "asr_final": 210.5,
        "llm_start": 220.0,
        "llm_first_token": 300.0,
        "llm_first_sentence": 420.0,
        "commit": 500.0,
        "audio_sent": 510.0,
        "interrupted": 1500.0,
    },
    "prompt_tokens": 200,
    "completion_tokens": 12,
    "draft_fate": "whole",
    "caller_text": "my secret",
    "reply_text": "your secret",
}


def spans_of(record: dict[str, Any]) -> dict[str, ReadableSpan]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    Tracing(provider.get_tracer("tests")).observe(record)
    return {span.name: span for span in exporter.get_finished_spans()}


def milliseconds(span: ReadableSpan) -> tuple[float, float]:
    """Start and end since the turn's start."""
    assert span.start_time is not None
    assert span.end_time is not None
    zero = STARTED.timestamp() * 1e9
    return round((span.start_time - zero) / 1e6, 1), round((span.end_time - zero) / 1e6, 1)


def test_each_stage_whose_marks_are_there_is_a_child_of_its_turn() -> None:
    spans = spans_of(RECORD)
    assert {name: milliseconds(span) for name, span in spans.items()} == {
        "turn": (0.0, 3500.0),
        "speech": (0.0, 2000.0),
        "endpoint": (2000.0, 2500.0),
        "asr": (2000.0, 2210.5),
        "ttft": (2220.0, 2300.0),
        "first_sentence": (2300.0, 2420.0),
        "after_commit": (2500.0, 2510.0),
        "voice_to_voice": (2000.0, 2510.0),
    }
    turn = spans["turn"]
    for name, span in spans.items():
        assert name == "turn" or (span.parent is not None and span.parent.span_id == turn.context.span_id)
    assert [event.name for event in turn.events] == list(RECORD["marks"])


def test_attributes_have_the_conventions_names_and_hold_nothing_said() -> None:
    turn = spans_of(RECORD)["turn"]
    assert turn.attributes is not None
    assert turn.attributes["gen_ai.conversation.id"] == "call-1"
    assert turn.attributes["gen_ai.usage.input_tokens"] == 200
    assert turn.attributes["gen_ai.usage.output_tokens"] == 12
    assert turn.attributes["rejoinder.draft_fate"] == "whole"
    assert "secret" not in turn.to_json()


def test_a_turn_without_speech_starts_at_its_commit() -> None:
    spans = spans_of(RECORD | {"marks": {"commit": 0.0, "audio_sent": 40.0, "reply_end": 900.0}})
    assert {name: milliseconds(span) for name, span in spans.items()} == {
        "turn": (0.0, 900.0),
        "after_commit": (0.0, 40.0),
        "reply": (40.0, 900.0),
    }


def test_a_turn_without_marks_makes_no_span() -> None:
    assert spans_of(RECORD | {"marks": {}}) == {}


def test_without_an_endpoint_there_is_no_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    assert Tracing.from_environment() is None


def test_an_endpoint_without_the_extra_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(TracingUnavailable, match=r"pip install '\.\[otel\]'"):
        Tracing.from_environment()
