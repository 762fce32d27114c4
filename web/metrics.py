"""Prometheus metrics of a running service: each turn's durations, and the counters of speculation.

The speculation counters have vLLM's names behind the prefix, so its dashboards' queries carry over, e.g.
acceptance rate: `rate(rejoinder_spec_decode_num_accepted_tokens_total[5m])
/ rate(rejoinder_spec_decode_num_draft_tokens_total[5m])`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

from web.routes import Admission, Request, Response, Routes, respond

BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)


class Metrics:
    """One service's metrics, in a registry of their own."""

    def __init__(self, running_calls: Callable[[], float] = lambda: 0) -> None:
        """`running_calls` is asked at every exposition."""
        self._registry = CollectorRegistry()
        calls = Gauge("rejoinder_calls_running", "Calls that are running.", registry=self._registry)
        calls.set_function(running_calls)
        self._durations = Histogram(
            "rejoinder_turn_duration_seconds",
            "Durations of a turn, by stage: see the latency log.",
            ["stage"],
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._turns = self._counter("turns", "Turns that are over.", "agent", "origin", "status")
        self._revisions = self._counter("revisions", "Turns' revisions: over one a turn, the caller went on.")
        self._fates = self._counter("reply_drafts", "How the replies' drafts fared.", "fate")
        self._skipped = self._counter(
            "drafts_skipped", "Turns without a reply draft, by what the machine had no room for.", "reason"
        )
        self._wasted = self._counter("reply_draft_tokens_wasted", "Tokens of drafted replies not used.")
        self._speech = self._counter("reply_audio_seconds", "Seconds of replies' audio.")
        self._prompt = self._counter("prompt_tokens", "Tokens of prompts.")
        self._cached = self._counter("prompt_tokens_cached", "Tokens of prompts that were in the cache.")
        self._generated = self._counter("generation_tokens", "Tokens of replies.")
        self._passes = self._counter("target_passes", "Runs of the target model while it generated.")
        self._drafts = self._counter("spec_decode_num_drafts", "Drafts that the target checked.")
        self._drafted = self._counter("spec_decode_num_draft_tokens", "Tokens drafted.", "drafter")
        self._accepted = self._counter(
            "spec_decode_num_accepted_tokens", "Drafted tokens accepted.", "drafter"
        )
        self._accepted_at = self._counter(
            "spec_decode_num_accepted_tokens_per_pos", "Accepted tokens by place in the draft.", "position"
        )

    def observe(self, record: Mapping[str, Any]) -> None:
        """Count one turn (see `pipeline.telemetry.timeline.TurnRecord.as_dict`)."""
        self._turns.labels(*(str(record.get(name) or "") for name in ("agent", "origin", "status"))).inc()
        self._speech.inc(record.get("audio_seconds") or 0)
        if record.get("turn"):
            self._observe_answer(record)
        self._observe_language(record)

    def exposition(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self._registry)

    def _observe_answer(self, record: Mapping[str, Any]) -> None:
        """A turn of the caller's; what the agent says unasked (turn 0) has no latency."""
        for stage, milliseconds in record.get("durations", {}).items():
            self._durations.labels(stage).observe(milliseconds / 1000)
        self._revisions.inc(record.get("revisions") or 0)
        self._fates.labels(record.get("draft_fate") or "none").inc()
        extra = record.get("extra") or {}
        self._wasted.inc(extra.get("wasted_tokens") or 0)
        if (reason := extra.get("draft_skipped")) is not None:
            self._skipped.labels(reason).inc()

    def _observe_language(self, record: Mapping[str, Any]) -> None:
        self._prompt.inc(record.get("prompt_tokens") or 0)
        self._cached.inc(record.get("cached_tokens") or 0)
        self._generated.inc(record.get("completion_tokens") or 0)
        self._passes.inc(record.get("passes") or 0)
        self._drafts.inc(record.get("spec_decode_num_drafts") or 0)
        for drafter, tokens in (record.get("drafted") or {}).items():
            self._drafted.labels(drafter).inc(tokens)
        for drafter, tokens in (record.get("accepted") or {}).items():
            self._accepted.labels(drafter).inc(tokens)
        for position, tokens in enumerate(record.get("spec_decode_num_accepted_tokens_per_pos") or ()):
            self._accepted_at.labels(str(position)).inc(tokens)

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"rejoinder_{name}", about, labels, registry=self._registry)


def mount(routes: Routes, metrics: Metrics, admit: Admission) -> None:
    """Add `/metrics`, for those whom `admit` lets in."""

    async def expose(request: Request) -> Response:
        return admit(request) or respond(metrics.exposition(), CONTENT_TYPE_LATEST)

    routes.page("/metrics", expose)
