"""Metrics: what a dashboard reads after some turns."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

from multidict import CIMultiDict
from prometheus_client.parser import text_string_to_metric_families

from web.metrics import Metrics, mount
from web.routes import Request, Response, Routes, respond_text


def samples(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Samples by name and label values."""
    families = text_string_to_metric_families(metrics.exposition().decode())
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


def turn(**changes: Any) -> dict[str, Any]:
    record = {
        "turn": 1,
        "agent": "receptionist",
        "origin": "web",
        "status": "completed",
        "revisions": 2,
        "draft_fate": "part",
        "audio_seconds": 1.5,
        "durations": {"ttft": 120.0, "voice_to_voice": 640.0},
        "prompt_tokens": 200,
        "cached_tokens": 150,
        "completion_tokens": 12,
        "passes": 5,
        "spec_decode_num_drafts": 3,
        "drafted": {"lookup": 9, "reply": 4},
        "accepted": {"lookup": 5, "reply": 2},
        "spec_decode_num_accepted_tokens_per_pos": [3, 2, 2],
    }
    return record | changes


def test_durations_become_histograms_in_seconds() -> None:
    metrics = Metrics()
    metrics.observe(turn())
    metrics.observe(turn(durations={"voice_to_voice": 1400.0}))
    found = samples(metrics)
    assert found["rejoinder_turn_duration_seconds_count", "voice_to_voice"] == 2
    assert found["rejoinder_turn_duration_seconds_sum", "voice_to_voice"] == 0.64 + 1.4
    assert found["rejoinder_turn_duration_seconds_bucket", "0.8", "voice_to_voice"] == 1
    assert found["rejoinder_turn_duration_seconds_count", "ttft"] == 1
    assert ("rejoinder_turn_duration_seconds_count", "asr") not in found


def test_skipped_and_wasted_drafts_are_counted() -> None:
    metrics = Metrics()
    metrics.observe(turn(extra={"draft_skipped": "committed", "wasted_tokens": 7}))
    metrics.observe(turn(extra={"draft_skipped": None, "wasted_tokens": 0}))
    metrics.observe(turn(extra={"draft_skipped": "calls", "wasted_tokens": 0}))
    found = samples(metrics)
    assert found["rejoinder_drafts_skipped_total", "committed"] == 1
    assert found["rejoinder_drafts_skipped_total", "calls"] == 1
    assert found["rejoinder_reply_draft_tokens_wasted_total",] == 7


def test_speculation_is_counted_by_drafter_and_position() -> None:
    metrics = Metrics()
    metrics.observe(turn())
    metrics.observe(turn())
    found = samples(metrics)
    assert found["rejoinder_spec_decode_num_drafts_total",] == 6
    assert found["rejoinder_spec_decode_num_draft_tokens_total", "lookup"] == 18
    assert found["rejoinder_spec_decode_num_accepted_tokens_total", "reply"] == 4
    assert found["rejoinder_spec_decode_num_accepted_tokens_per_pos_total", "0"] == 6
    assert found["rejoinder_spec_decode_num_accepted_tokens_per_pos_total", "2"] == 4
    assert found["rejoinder_generation_tokens_total",] == 24
    assert found["rejoinder_prompt_tokens_cached_total",] == 300
    assert found["rejoinder_target_passes_total",] == 10


def test_turns_are_counted_by_how_they_ended() -> None:
    metrics = Metrics()
    metrics.observe(turn())
    metrics.observe(turn(status="interrupted", draft_fate="whole"))
    found = samples(metrics)
    assert found["rejoinder_turns_total", "receptionist", "web", "completed"] == 1
    assert found["rejoinder_turns_total", "receptionist", "web", "interrupted"] == 1
    assert found["rejoinder_reply_drafts_total", "whole"] == 1
    assert found["rejoinder_revisions_total",] == 4


def test_a_greeting_has_audio_but_no_latency() -> None:
    metrics = Metrics()
    metrics.observe(
        {"turn": 0, "agent": "a", "origin": "web", "durations": {"tts": 50.0}, "audio_seconds": 2.0}
    )
    found = samples(metrics)
    assert found["rejoinder_reply_audio_seconds_total",] == 2.0
    assert ("rejoinder_turn_duration_seconds_count", "tts") not in found


def test_running_calls_are_asked_when_they_are_shown() -> None:
    calls = [1]
    metrics = Metrics(lambda: calls[0])
    assert samples(metrics)["rejoinder_calls_running",] == 1
    calls[0] = 3
    assert samples(metrics)["rejoinder_calls_running",] == 3


def test_the_page_is_for_those_who_are_let_in() -> None:
    def admit(request: Request) -> Response | None:
        known = request.headers.get("Authorization") == "Bearer sesame"
        return None if known else respond_text("who are you?", status=HTTPStatus.UNAUTHORIZED)

    routes = Routes()
    mount(routes, Metrics(), admit)

    def get(**headers: str) -> Response:
        answer = asyncio.run(routes.answer(Request("/metrics", CIMultiDict(headers))))
        assert isinstance(answer, Response)
        return answer

    assert get().status == 401
    page = get(Authorization="Bearer sesame")
    assert page.status == 200
    assert page.headers["Content-Type"].startswith("text/plain; version=")
    assert b"rejoinder_calls_running 0.0" in page.body
