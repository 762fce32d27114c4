"""The latency log: whole rows, private ones on demand, and never in a call's way."""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.telemetry import latency_log
from pipeline.telemetry.latency_log import LatencyLog, LatencyLogError, json_lines
from pipeline.telemetry.timeline import DURATIONS, MARKS
from tests.machine import PATIENCE


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "latency.db"


@pytest.fixture
def log(path: Path) -> Iterator[LatencyLog]:
    opened = LatencyLog(path)
    yield opened
    opened.close()


def turn(number: int = 1, **changes: Any) -> dict[str, Any]:
    record = {
        "call_id": "call-1",
        "turn": number,
        "revision": 2,
        "revisions": 2,
        "agent": "receptionist",
        "origin": "web",
        "started_at": "2026-01-02T03:04:05+00:00",
        "status": "completed",
        "marks": {mark: float(i) for i, mark in enumerate(MARKS) if mark != "interrupted"},
        "durations": {stage: 100.0 * number + i for i, stage in enumerate(DURATIONS)},
        "prompt_tokens": 120,
        "cached_tokens": 100,
        "passes": 4,
        "committed_tokens": 10,
        "draft_fate": "part",
        "interrupted": False,
        "audio_seconds": 1.5,
        "caller": "+491701234567",
        "caller_text": "Are you open?",
        "reply_text": "Yes, until six.",
        "heard_text": "Yes, until six.",
        "drafted": {"lookup": 12},
        "extra": {"gate": "open"},
    }
    return record | changes


def test_a_turn_comes_back_as_it_was(log: LatencyLog) -> None:
    log.append(turn())
    assert log.flush(10)
    (back,) = log.recent(5)
    expected = turn(caller="**********567", tokens_per_pass=2.5)
    expected["extra"] = {"gate": "open", "drafted": expected.pop("drafted")}
    assert back == expected


def test_what_did_not_happen_is_absent(log: LatencyLog, path: Path) -> None:
    log.append(turn(marks={"commit": 0.0}, durations={}))
    assert log.flush(10)
    (back,) = log.recent(1)
    assert back["marks"] == {"commit": 0.0}
    assert back["durations"] == {}
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT audio_sent_ms, interrupted_ms FROM turns").fetchone() == (
            None,
            None,
        )


def test_every_mark_and_duration_has_a_column(log: LatencyLog, path: Path) -> None:
    with sqlite3.connect(path) as connection:
        columns = {row[1] for row in connection.execute("PRAGMA table_info(turns)")}
    assert {f"{name}_ms" for name in (*MARKS, *DURATIONS)} | set(latency_log.FIGURES) <= columns


def test_transcripts_are_not_stored_on_demand(path: Path) -> None:
    log = LatencyLog(path, store_transcripts=False)
    log.append(turn())
    log.close()
    (back,) = log.recent(1)
    assert not set(latency_log.TEXTS) & set(back)
    assert b"until six" not in path.read_bytes()
    assert back["passes"] == 4


def test_the_writer_stays_until_it_has_been_told_to_end(log: LatencyLog, monkeypatch: Any) -> None:
    """It ends a round between the moment at which the log is closed and the one at which it is told."""
    writing, may_write, waits = threading.Event(), threading.Event(), threading.Event()
    get, put = log._queue.get, log._queue.put

    def insert(rows: list[dict[str, Any]]) -> None:
        writing.set()
        assert may_write.wait(PATIENCE)

    def next_item() -> Any:
        waits.set()
        return get()

    def tell(item: Any, timeout: float | None = None) -> None:
        may_write.set()
        while log._writer.is_alive() and not waits.wait(0.001):
            pass
        put(item, timeout=timeout)

    monkeypatch.setattr(log, "_insert", insert)
    log.append(turn())
    assert writing.wait(PATIENCE)
    monkeypatch.setattr(log._queue, "get", next_item)
    monkeypatch.setattr(log._queue, "put", tell)
    log.close()
    assert log._queue.empty(), "nobody is left who takes it"
    assert not log._writer.is_alive()


def test_percentiles_of_the_last_turns(log: LatencyLog, path: Path) -> None:
    for number in range(1, 102):
        log.append(turn(number))
    log.append(turn(0, durations={"tts": 5.0}))
    assert log.flush(10)
    assert log.percentiles()["endpoint"] == {"p50": 5100.0, "p95": 9600.0, "p99": 10000.0}
    assert log.percentiles(last=1)["endpoint"] == {"p50": 10100.0, "p95": 10100.0, "p99": 10100.0}
    assert log.percentiles()["voice_to_voice"]["p50"] == 5106.0
    assert latency_log.turns(path) == 101, "what the agent says unasked is not a turn"
    assert latency_log.turns(path, 7) == 7


def test_how_drafts_fared_is_summed_up(log: LatencyLog, path: Path) -> None:
    assert latency_log.drafts(path) == {"shares": {}, "tokens_wasted": 0, "skipped": {}}
    for fate, wasted, skipped in (
        ("whole", 0, None),
        ("whole", 3, None),
        ("part", 9, None),
        ("none", 0, "calls"),
    ):
        log.append(turn(draft_fate=fate, extra={"wasted_tokens": wasted, "draft_skipped": skipped}))
    log.append(turn(0, draft_fate="none", extra={}))
    assert log.flush(10)
    assert latency_log.drafts(path) == {
        "shares": {"whole": 0.5, "part": 0.25, "none": 0.25, "wasted": 0.0},
        "tokens_wasted": 12,
        "skipped": {"calls": 1},
    }
    assert latency_log.drafts(path, 1)["shares"]["none"] == 1.0


def test_a_stage_that_no_turn_has_is_absent(log: LatencyLog) -> None:
    log.append(turn(durations={"asr": 12.0}))
    assert log.flush(10)
    assert log.percentiles() == {"asr": {"p50": 12.0, "p95": 12.0, "p99": 12.0}}


def test_a_full_queue_drops_rows_and_counts_them(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    writing, go_on = threading.Event(), threading.Event()
    insert: Callable[..., None] = LatencyLog._insert

    def held(self: LatencyLog, rows: list[dict[str, Any]]) -> None:
        writing.set()
        go_on.wait(PATIENCE)
        insert(self, rows)

    monkeypatch.setattr(LatencyLog, "_insert", held)
    log = LatencyLog(path, capacity=2)
    log.append(turn(1))
    assert writing.wait(PATIENCE)
    for number in (2, 3, 4, 5):
        log.append(turn(number))
    go_on.set()
    log.close()
    assert log.dropped == 2
    assert [row["turn"] for row in log.recent(10)] == [3, 2, 1]
    assert "2 turns are waiting to be written" in caplog.text


def test_a_locked_file_costs_rows_not_calls(
    log: LatencyLog, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(latency_log, "BUSY_SECONDS", 0.01)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    log.append(turn(1))
    assert log.flush(10)
    other.execute("COMMIT")
    other.close()
    log.append(turn(2))
    assert log.flush(10)
    assert log.dropped == 1
    assert "database is locked" in caplog.text
    assert [row["turn"] for row in log.recent(10)] == [2]


def test_a_full_disk_costs_rows_not_calls(
    log: LatencyLog, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    connect = sqlite3.connect

    def small(*args: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **options)
        connection.execute("PRAGMA max_page_count = 1")
        return connection

    monkeypatch.setattr(sqlite3, "connect", small)
    log.append(turn(1, reply_text="word " * 100_000))
    assert log.flush(10)
    monkeypatch.setattr(sqlite3, "connect", connect)
    log.append(turn(2))
    assert log.flush(10)
    assert log.dropped == 1
    assert "disk is full" in caplog.text
    assert [row["turn"] for row in log.recent(10)] == [2]


def test_a_row_without_its_call_is_dropped_and_the_writer_goes_on(log: LatencyLog) -> None:
    broken = turn(1)
    del broken["call_id"]
    log.append(broken)
    assert log.flush(10)
    log.append(turn(2))
    assert log.flush(10)
    assert (log.dropped, [row["turn"] for row in log.recent(10)]) == (1, [2])


def test_text_that_is_no_text_costs_its_row_and_the_writer_goes_on(log: LatencyLog) -> None:
    log.append(turn(1, caller_text="\ud83d"))
    assert log.flush(10)
    log.append(turn(2))
    assert log.flush(10)
    assert (log.dropped, [row["turn"] for row in log.recent(10)]) == (1, [2])


def test_a_file_that_was_moved_away_is_begun_again(log: LatencyLog, path: Path) -> None:
    log.append(turn(1))
    assert log.flush(10)
    path.rename(path.with_suffix(".old"))
    log.append(turn(2))
    assert log.flush(10)
    assert (log.dropped, [row["turn"] for row in log.recent(10)]) == (0, [2])


def test_after_close_turns_are_counted_as_dropped(log: LatencyLog) -> None:
    log.append(turn(1))
    log.close()
    log.append(turn(2))
    assert (log.dropped, len(log.recent(10))) == (1, 1)


def test_rows_survive_reopening_and_migrations_run_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = LatencyLog(path)
    first.append(turn(1))
    first.close()
    added = (*latency_log.MIGRATIONS, "ALTER TABLE turns ADD COLUMN mood TEXT;")
    with sqlite3.connect(path) as connection:
        latency_log._migrate(connection, path, added)
        latency_log._migrate(connection, path, added)
        assert connection.execute("SELECT turn, mood FROM turns").fetchall() == [(1, None)]
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    with pytest.raises(LatencyLogError, match="written by a newer version"):
        LatencyLog(path)


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("these are my notes, " * 100)
    with pytest.raises(LatencyLogError, match=r"cannot use .* file is not a database"):
        LatencyLog(path)
    assert path.read_text().startswith("these are my notes")


@pytest.mark.parametrize("content", ["these are my notes, " * 100, ""])
def test_reading_a_file_that_is_no_log_says_so(path: Path, content: str) -> None:
    path.parent.mkdir()
    path.write_text(content)
    for read in (latency_log.turns, latency_log.recent, latency_log.percentiles, latency_log.drafts):
        with pytest.raises(LatencyLogError, match="cannot read the latency log"):
            read(path, 1)


def test_reading_a_log_that_is_not_there_says_so(path: Path) -> None:
    with pytest.raises(LatencyLogError, match="make a call first"):
        latency_log.recent(path, 1)
    assert not path.exists()


def test_a_json_line_is_the_record(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    line = json_lines(turn(caller_text="Zwölf\nUhr?"))
    assert "\n" not in line
    assert json.loads(line) == turn(caller_text="Zwölf\nUhr?", caller="**********567")
    assert "until six" not in json_lines(turn(), store_transcripts=False)


@pytest.mark.parametrize(
    ("caller", "shown"),
    [("+491701234567", "**********567"), ("12345", "*****"), ("anna@example.com", "*************com")],
)
def test_numbers_are_masked(caller: str, shown: str) -> None:
    assert latency_log.mask_number(caller) == shown


def test_numbers_are_kept_whole_only_where_that_is_asked_for(path: Path) -> None:
    log = LatencyLog(path, mask_callers=False)
    log.append(turn())
    log.close()
    assert latency_log.recent(path, 1)[0]["caller"] == "+491701234567"
