"""OpenTelemetry spans of a turn's stages, made from its record when the turn is over.

Needs the extra `otel`. OpenTelemetry's own variables (OTEL_EXPORTER_OTLP_ENDPOINT, …) say where spans go.
Attributes follow its semantic conventions where they have a name; what was said is never an attribute.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pipeline.telemetry.timeline import DURATIONS, MARKS

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
NANOSECONDS_PER_MS = 1_000_000

SPANS = {"speech": ("speech_start", "speech_end"), **DURATIONS, "reply": ("audio_sent", "reply_end")}
"""Children of a turn's span: (first mark, last mark)."""

ATTRIBUTES = {
    "call_id": "gen_ai.conversation.id",
    "agent": "gen_ai.agent.name",
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "completion_tokens": "gen_ai.usage.output_tokens",
    "turn": "rejoinder.turn",
    "revision": "rejoinder.revision",
    "origin": "rejoinder.origin",
    "status": "rejoinder.status",
    "interrupted": "rejoinder.interrupted",
    "draft_fate": "rejoinder.draft_fate",
    "passes": "rejoinder.passes",
    "tokens_per_pass": "rejoinder.tokens_per_pass",
}


class TracingUnavailable(Exception):
    """Spans were asked for but the extra is not installed."""


class Tracing:
    """Turns records into spans: one trace a turn, its stages as children, its marks as events."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    @classmethod
    def from_environment(cls) -> Tracing | None:
        """As OpenTelemetry's variables say; None where they name no endpoint. Raises TracingUnavailable."""
        if not any(os.environ.get(name) for name in ENDPOINTS):
            return None
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import SERVICE_NAME, Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as error:
            raise TracingUnavailable(
                f"{' or '.join(ENDPOINTS)} is set, but OpenTelemetry is not installed: pip install '.[otel]'"
            ) from error
        name = os.environ.get("OTEL_SERVICE_NAME", "rejoinder")
        provider = TracerProvider(resource=Resource.create({SERVICE_NAME: name}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        return cls(provider.get_tracer("rejoinder"))

    def observe(self, record: Mapping[str, Any]) -> None:
        """Make the spans of one finished turn (see `pipeline.telemetry.timeline.TurnRecord.as_dict`)."""
        from opentelemetry.trace import set_span_in_context

        times = _wall_times(record)
        if not times:
            return
        turn = self._tracer.start_span("turn", start_time=min(times.values()), attributes=_attributes(record))
        for mark, at in times.items():
            turn.add_event(mark, timestamp=at)
        within = set_span_in_context(turn)
        for name, (first, last) in SPANS.items():
            if first in times and last in times:
                stage = self._tracer.start_span(name, within, start_time=times[first])
                stage.end(times[last])
        turn.end(max(times.values()))


def _wall_times(record: Mapping[str, Any]) -> dict[str, int]:
    """Nanoseconds since the epoch of every mark. `started_at` is when speech_start, else commit, was."""
    marks: Mapping[str, float] = record.get("marks", {})
    anchor = marks.get("speech_start", marks.get("commit"))
    if anchor is None:
        return {}
    started = round(datetime.fromisoformat(record["started_at"]).timestamp() * 1000) * NANOSECONDS_PER_MS
    return {
        mark: started + round((marks[mark] - anchor) * NANOSECONDS_PER_MS) for mark in MARKS if mark in marks
    }


def _attributes(record: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: record[key] for key, name in ATTRIBUTES.items() if record.get(key) is not None}
    return {"gen_ai.operation.name": "chat", **kept}
