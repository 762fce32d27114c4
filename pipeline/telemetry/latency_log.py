"""The latency log: one row a turn in SQLite (WAL), written by one thread that no call ever waits for."""

from __future__ import annotations

import json
import logging
import queue
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import places
from pipeline.telemetry.timeline import DURATIONS, MARKS

log = logging.getLogger(__name__)

QUEUED_TURNS = 1024
BUSY_SECONDS = 5.0
PERCENTILES = (50, 95, 99)
SHOWN_DIGITS = 3

FATES = ("whole", "part", "none", "wasted")
"""Of a turn's reply draft: see `pipeline.records.draft_fate`."""

TEXTS = ("caller_text", "reply_text", "heard_text")

MIGRATIONS = (
    """
    CREATE TABLE turns (
        id INTEGER PRIMARY KEY,
        call_id TEXT NOT NULL, turn INTEGER NOT NULL, revision INTEGER NOT NULL,
        agent TEXT, origin TEXT, caller TEXT, started_at TEXT NOT NULL, status TEXT,
        speech_start_ms REAL, speech_end_ms REAL, soft_end_ms REAL, asr_final_ms REAL,
        llm_start_ms REAL, llm_first_token_ms REAL, llm_first_sentence_ms REAL,
        tts_start_ms REAL, tts_first_audio_ms REAL, commit_ms REAL, audio_sent_ms REAL,
        audio_heard_ms REAL, reply_end_ms REAL, interrupted_ms REAL,
        endpoint_ms REAL, asr_ms REAL, ttft_ms REAL, first_sentence_ms REAL, tts_ms REAL,
        after_commit_ms REAL, voice_to_voice_ms REAL,
        prompt_tokens INTEGER, cached_tokens INTEGER, passes INTEGER, committed_tokens INTEGER,
        tokens_per_pass REAL, draft_fate TEXT, revisions INTEGER, interrupted INTEGER,
        audio_seconds REAL, caller_text TEXT, reply_text TEXT, heard_text TEXT,
        extra TEXT NOT NULL DEFAULT '{}'
    );
    CREATE INDEX turns_by_call ON turns (call_id, turn);
    """,
)
"""One script a schema version; `PRAGMA user_version` holds how many have been run. Never edit one: append."""

FIGURES = (
    *("call_id", "turn", "revision", "agent", "origin", "caller", "started_at", "status"),
    *("prompt_tokens", "cached_tokens", "passes", "committed_tokens", "tokens_per_pass"),
    *("draft_fate", "revisions", "interrupted", "audio_seconds"),
    *TEXTS,
)
"""Keys of a record with a column of their own, beside marks and durations. The others go to `extra`."""


WHERE_ELSE = "Set latency_log (REJOINDER_LATENCY_LOG) to a file in a folder that this user may write to."


class LatencyLogError(Exception):
    """The log cannot be opened; the message says why and what to do."""


class LatencyLog:
    """One SQLite file with a row a turn.

    `append` never blocks and never raises for the disk's sake: a full queue, full disk or locked file costs
    rows, which are counted in `dropped` and reported as a warning.
    """

    def __init__(
        self,
        path: Path,
        *,
        store_transcripts: bool = True,
        mask_callers: bool = True,
        capacity: int = QUEUED_TURNS,
    ) -> None:
        """Open or create the file and bring its schema up to date. Raises LatencyLogError."""
        self.path = path
        self.dropped = 0
        self._store_transcripts = store_transcripts
        self._mask_callers = mask_callers
        self._queue: queue.Queue[dict[str, Any] | threading.Event | None] = queue.Queue(capacity)
        self._closed = False
        with _opened(path) as connection:
            _migrate(connection, path)
        self._writer = threading.Thread(target=self._write, name="latency-log", daemon=True)
        self._writer.start()

    def append(self, record: Mapping[str, Any]) -> None:
        """Queue one turn (see `pipeline.telemetry.timeline.TurnRecord.as_dict`) for writing."""
        if self._closed:
            self._drop(1, "the log is closed")
            return
        try:
            self._queue.put_nowait(_row(record, self._store_transcripts, self._mask_callers))
        except queue.Full:
            self._drop(1, f"{self._queue.maxsize} turns are waiting to be written")

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything appended so far was written or dropped; False after `timeout` seconds."""
        written = threading.Event()
        try:
            self._queue.put(written, timeout=timeout)
        except queue.Full:
            return False
        return written.wait(timeout)

    def close(self) -> None:
        """Write what is queued and end the writer."""
        if not self._closed:
            self._closed = True
            with suppress(queue.Full):
                self._queue.put(None, timeout=2 * BUSY_SECONDS)
                self._writer.join(2 * BUSY_SECONDS)

    def recent(self, last: int | None = None) -> list[dict[str, Any]]:
        """The last turns (None: all), newest first, as records: what is absent in the row is absent here."""
        return recent(self.path, last)

    def percentiles(self, last: int | None = None) -> dict[str, dict[str, float]]:
        """{stage: {p50, p95, p99}} in milliseconds over the last turns (None: all)."""
        return percentiles(self.path, last)

    def _write(self) -> None:
        """The writer thread: everything that is queued becomes one transaction. None in the queue ends it,
        and nothing else: whoever closes the log waits for that to be read."""
        while True:
            items = [self._queue.get()]
            while not self._queue.empty():
                items.append(self._queue.get_nowait())
            self._insert([item for item in items if isinstance(item, dict)])
            for item in items:
                if isinstance(item, threading.Event):
                    item.set()
            if None in items:
                return

    def _insert(self, rows: list[dict[str, Any]]) -> None:
        if not rows:
            return
        try:
            with _opened(self.path) as connection, connection:
                _migrate(connection, self.path)  # somebody may have moved the file away
                for row in rows:
                    names = ", ".join(row)
                    places = ", ".join(f":{name}" for name in row)
                    connection.execute(f"INSERT INTO turns ({names}) VALUES ({places})", row)
        except (sqlite3.Error, LatencyLogError, UnicodeEncodeError) as error:  # text may be half a character
            self._drop(len(rows), str(error))

    def _drop(self, count: int, reason: str) -> None:
        self.dropped += count
        log.warning(
            "latency log %s: %d turn(s) not logged (%s); %d so far", self.path, count, reason, self.dropped
        )


def json_lines(
    record: Mapping[str, Any],
    *,
    store_transcripts: bool = True,
    mask_callers: bool = True,
    ascii_only: bool = False,
) -> str:
    """The record as one line of JSON, without the line's end; what was said left out on demand."""
    kept = dict(record) if store_transcripts else {k: v for k, v in record.items() if k not in TEXTS}
    if mask_callers and kept.get("caller"):
        kept["caller"] = mask_number(kept["caller"])
    return json.dumps(kept, ensure_ascii=ascii_only, default=str)


def mask_number(caller: str) -> str:
    """A caller's number with all but its last three characters hidden."""
    hidden = max(len(caller) - SHOWN_DIGITS, 0) if len(caller) > SHOWN_DIGITS + 2 else len(caller)
    return "*" * hidden + caller[hidden:]


def turns(path: Path, last: int | None = None) -> int:
    """Turns in the log, `last` at most. Turn 0, what an agent says unasked, is not counted."""
    with _opened(path, read_only=True) as connection:
        (counted,) = connection.execute(f"SELECT count(*) FROM ({_ANSWERED})", (_limit(last),)).fetchone()
        return int(counted)


def recent(path: Path, last: int | None = None) -> list[dict[str, Any]]:
    """The last turns of the log at `path` (None: all), newest first. Raises LatencyLogError."""
    with _opened(path, read_only=True) as connection:
        connection.row_factory = sqlite3.Row
        rows = connection.execute("SELECT * FROM turns ORDER BY id DESC LIMIT ?", (_limit(last),)).fetchall()
        return [_record(row) for row in rows]


def percentiles(path: Path, last: int | None = None) -> dict[str, dict[str, float]]:
    """{stage: {p50, p95, p99}} in milliseconds over the last turns of the log at `path`; None: all of them.

    A stage that no turn has is absent. Percentiles interpolate linearly. Raises LatencyLogError.
    """
    stages = {}
    with _opened(path, read_only=True) as connection:
        rows = connection.execute(_ANSWERED, (_limit(last),)).fetchall()
    for stage, column in zip(DURATIONS, zip(*rows, strict=True), strict=False):
        values = [value for value in column if value is not None]
        if values:
            cuts = np.percentile(values, PERCENTILES)
            stages[stage] = {f"p{p}": round(float(cut), 1) for p, cut in zip(PERCENTILES, cuts, strict=True)}
    return stages


def drafts(path: Path, last: int | None = None) -> dict[str, Any]:
    """How the replies' drafts fared over the last turns of the log at `path`; None: all of them.

    `shares`: of the turns, by fate (`whole`, `part`, `none`, `wasted`); empty without turns. `tokens_wasted`:
    drafted tokens that no reply used. `skipped`: turns that were not drafted for, by reason. Raises
    LatencyLogError.
    """
    with _opened(path, read_only=True) as connection:
        rows = connection.execute(_DRAFTS, (_limit(last),)).fetchall()
    fates = Counter(fate for fate, _, _ in rows)
    return {
        "shares": {fate: round(fates[fate] / len(rows), 3) for fate in FATES} if rows else {},
        "tokens_wasted": sum(tokens or 0 for _, tokens, _ in rows),
        "skipped": dict(Counter(reason for _, _, reason in rows if reason is not None)),
    }


_DRAFTS = """
    SELECT draft_fate, json_extract(extra, '$.wasted_tokens'), json_extract(extra, '$.draft_skipped')
    FROM turns WHERE turn > 0 ORDER BY id DESC LIMIT ?
"""
_STAGES = ", ".join(f"{stage}_ms" for stage in DURATIONS)
_ANSWERED = f"SELECT {_STAGES} FROM turns WHERE turn > 0 ORDER BY id DESC LIMIT ?"


def _limit(last: int | None) -> int:
    return -1 if last is None else last


@contextmanager
def _opened(path: Path, *, read_only: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection for the time of the block; what goes wrong in opening it, or in reading, is a
    LatencyLogError."""
    try:
        if places.without_home(path):
            raise LatencyLogError(f"there is no home folder for the latency log {path}. {WHERE_ELSE}")
        if read_only and not path.is_file():
            raise LatencyLogError(f"there is no latency log at {path} yet: make a call first")
        if not read_only:
            _make_room(path)
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS)
    except (OSError, sqlite3.Error) as error:
        raise LatencyLogError(f"cannot open the latency log {path}: {error}. {WHERE_ELSE}") from error
    with closing(connection):
        try:
            yield connection
        except sqlite3.Error as error:
            if not read_only:
                raise
            raise LatencyLogError(
                f"cannot read the latency log {path}: {error}. Set latency_log to the file of the service."
            ) from error


def _make_room(path: Path) -> None:
    """Make the file, and its folder, for this user alone. Raises OSError."""
    places.make_private_folder(path.parent)
    if not path.exists():
        places.make_private_file(path)


def _make_private(path: Path) -> None:
    """Take the rights that earlier versions, and the umask, gave others; also on what SQLite keeps beside the
    file."""
    path = places.behind_links(path)
    for kept in ("", "-wal", "-shm", "-journal"):
        places.make_private(path.with_name(path.name + kept))


def _migrate(connection: sqlite3.Connection, path: Path, scripts: Sequence[str] = MIGRATIONS) -> None:
    """Run the scripts that this file has not seen, each in one transaction with its version number; the file
    is then ours, and its owner's alone."""
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > len(scripts):
            raise LatencyLogError(
                f"the latency log {path} was written by a newer version (schema {version}, this one knows "
                f"{len(scripts)}). Upgrade, or set latency_log to another file."
            )
        for number, script in enumerate(scripts[version:], start=version + 1):
            connection.executescript(f"BEGIN IMMEDIATE; {script}; PRAGMA user_version = {number}; COMMIT;")
        _make_private(path)
    except (OSError, sqlite3.Error) as error:
        raise LatencyLogError(f"cannot use {path} as the latency log: {error}. {WHERE_ELSE}") from error


def _row(record: Mapping[str, Any], store_transcripts: bool, mask_callers: bool) -> dict[str, Any]:
    """The columns of a record."""
    row = {name: record[name] for name in FIGURES if record.get(name) is not None}
    if "completion_tokens" in record:
        row["committed_tokens"] = record["completion_tokens"]
    row |= {f"{mark}_ms": ms for mark, ms in record.get("marks", {}).items() if mark in MARKS}
    row |= {f"{stage}_ms": ms for stage, ms in record.get("durations", {}).items() if stage in DURATIONS}
    if row.get("passes") and "tokens_per_pass" not in row and "committed_tokens" in row:
        row["tokens_per_pass"] = round(row["committed_tokens"] / row["passes"], 3)
    if "interrupted" in row:
        row["interrupted"] = int(row["interrupted"])
    if mask_callers and row.get("caller"):
        row["caller"] = mask_number(row["caller"])
    if not store_transcripts:
        row |= dict.fromkeys(TEXTS)
    kept = (*FIGURES, "completion_tokens", "marks", "durations", "extra")
    others = {k: v for k, v in record.items() if k not in kept}
    row["extra"] = json.dumps({**others, **record.get("extra", {})}, ensure_ascii=False, default=str)
    return row


def _record(row: sqlite3.Row) -> dict[str, Any]:
    """A row as the record it was made from."""
    values = {name: row[name] for name in row.keys() if row[name] is not None}  # noqa: SIM118
    record = {name: values[name] for name in FIGURES if name in values}
    if "interrupted" in record:
        record["interrupted"] = bool(record["interrupted"])
    record["marks"] = {mark: values[f"{mark}_ms"] for mark in MARKS if f"{mark}_ms" in values}
    record["durations"] = {stage: values[f"{stage}_ms"] for stage in DURATIONS if f"{stage}_ms" in values}
    record["extra"] = json.loads(values["extra"])
    return record
