"""What was said is for the owner's eyes alone, whatever the umask and whatever earlier versions left."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from pipeline import places
from pipeline.telemetry.latency_log import LatencyLog, LatencyLogError
from web.commands.recordings import write_recording

TURN = {
    "call_id": "c",
    "turn": 1,
    "revision": 0,
    "started_at": "2026-01-01T00:00:00Z",
    "caller_text": "hello",
}


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that is ours where no setting says otherwise."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    return places.data()


def logged(path: Path) -> LatencyLog:
    """A log with a turn, still open: what SQLite keeps beside the file is there."""
    log = LatencyLog(path)
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("SELECT count(*) FROM turns").fetchone()
        log.append(TURN)
        assert log.flush(10)
        beside = {file.name for file in path.parent.iterdir()}
        assert {f"{path.name}-wal", f"{path.name}-shm"} <= beside
        assert [rights(file) for file in path.parent.iterdir()] == [0o600] * len(beside)
    return log


@pytest.mark.usefixtures("umask")
def test_a_new_log_and_the_folders_made_for_it(data: Path) -> None:
    logged(data / "latency.db").close()
    assert rights(data / "latency.db") == 0o600
    assert rights(data) == rights(data.parent) == 0o700


def test_what_an_earlier_version_left_is_tightened_at_start(data: Path) -> None:
    data.mkdir(parents=True, mode=0o755)
    path = data / "latency.db"
    LatencyLog(path).close()
    with closing(sqlite3.connect(path)) as other:  # keeps the files beside the log in being
        other.execute("INSERT INTO turns (call_id, turn, revision, started_at) VALUES ('c', 1, 0, '')")
        other.commit()
        data.chmod(0o755)
        for file in data.iterdir():
            file.chmod(0o664)
        LatencyLog(path).close()
        assert len(list(data.iterdir())) == 3
        assert {rights(file) for file in data.iterdir()} == {0o600}
    assert rights(data) == 0o700


def test_a_folder_of_others_is_left_as_it_is(tmp_path: Path, data: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    logged(shared / "latency.db").close()
    assert rights(shared) == 0o1777
    other = shared / "notes.txt"
    other.write_text("mine")
    other.chmod(0o644)
    with pytest.raises(LatencyLogError):
        LatencyLog(other)
    assert rights(other) == 0o644, "it is no log of ours"
    logged(shared / "deeper" / "still" / "latency.db").close()
    assert rights(shared / "deeper") == rights(shared / "deeper" / "still") == 0o700


def test_a_log_behind_a_link_is_found_where_it_is(tmp_path: Path, data: Path) -> None:
    (tmp_path / "disk").mkdir(mode=0o755)
    (tmp_path / "link.db").symlink_to(tmp_path / "disk" / "latency.db")
    LatencyLog(tmp_path / "link.db").close()
    assert rights(tmp_path / "disk" / "latency.db") == 0o600


def test_a_log_behind_links_that_go_round_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.db").symlink_to(tmp_path / "b.db")
    (tmp_path / "b.db").symlink_to(tmp_path / "a.db")
    with pytest.raises(LatencyLogError, match=r"a\.db: .*Set latency_log"):
        LatencyLog(tmp_path / "a.db")


def test_a_log_that_was_moved_away_is_made_anew_for_the_owner_alone(data: Path) -> None:
    log = LatencyLog(data / "latency.db")
    for file in data.iterdir():
        file.unlink()
    log.append(TURN)
    assert log.flush(10)
    log.close()
    assert rights(data / "latency.db") == 0o600


@pytest.mark.usefixtures("umask")
def test_recordings(tmp_path: Path) -> None:
    file = tmp_path / "answer.wav"
    write_recording(file, np.zeros(100, np.float32), 24_000)
    assert rights(file) == 0o600
    file.chmod(0o644)
    write_recording(file, np.zeros(100, np.float32), 24_000)
    assert rights(file) == 0o600


def test_only_files_are_made_private(tmp_path: Path) -> None:
    folder, pipe = tmp_path / "folder", tmp_path / "pipe"
    folder.mkdir()
    folder.chmod(0o755)
    os.mkfifo(pipe)
    pipe.chmod(0o666)
    for path in (folder, pipe):
        before = rights(path)
        places.make_private_file(path)
        assert rights(path) == before


def test_rights_that_the_owner_does_not_have_are_not_given(tmp_path: Path) -> None:
    file = tmp_path / "read-only"
    file.touch()
    file.chmod(0o444)
    places.make_private_file(file)
    assert rights(file) == 0o400
