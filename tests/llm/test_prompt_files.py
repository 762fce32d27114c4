"""Agents' prompts on disk: whole or not at all, for their owner alone, and never a reason to fail."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from llm.fair_lock import FairLock
from llm.prompt_files import PromptFiles
from llm.shared_prompt import SharedPrompts
from tests.llm.toys import ToyTarget, random_rows

IDS = [int(i) for i in np.random.default_rng(5).integers(0, 50, 90)]


def files(folder: Path, key: str = "weights engine", most_bytes: int = 1 << 20) -> PromptFiles:
    return PromptFiles(folder, "model.gguf", key, 4, most_bytes)


def started(folder: Path, ids: list[int] = IDS, key: str = "weights engine") -> int:
    """Start once with a prompt; how many ids the target read for it. What is shared is checked."""
    toy = ToyTarget(random_rows(50), 50)
    prompts = SharedPrompts(toy, FairLock(), files(folder, key))
    assert prompts.read(ids, lambda: False)
    read = prompts.longest("", ids, 0)
    assert read is not None
    assert np.ascontiguousarray(read).view("<i4")[:, 0].tolist() == ids
    return sum(count for cache in toy.caches for count, _ in cache.blocks)


def only(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


@pytest.mark.parametrize("mask", [0o000, 0o077, 0o277])
def test_a_restart_reads_nothing(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        assert started(tmp_path) == len(IDS)
    finally:
        os.umask(before)
    assert only(tmp_path).stat().st_mode & 0o177 == 0
    only(tmp_path).chmod(0o600)
    assert started(tmp_path) == 0
    assert started(tmp_path, key="other weights engine") == len(IDS), "another model's prompt"
    assert started(tmp_path, ids=IDS[:-1]) == len(IDS) - 1, "another prompt"


def flip(place: int) -> Callable[[Path], None]:
    def damage(file: Path) -> None:
        content = bytearray(file.read_bytes())
        content[place] ^= 1
        file.write_bytes(content)

    return damage


def replaced_by_a_link(file: Path) -> None:
    elsewhere = file.with_name("elsewhere")
    file.rename(elsewhere)
    file.symlink_to(elsewhere)


def replaced_by_a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "magic": flip(0),
    "hash": flip(20),
    "first byte": flip(40),
    "last byte": flip(-1),
    "cut": lambda file: os.truncate(file, file.stat().st_size - 1),
    "empty": lambda file: os.truncate(file, 0),
    "longer": lambda file: os.truncate(file, file.stat().st_size + 1),
    "zeros": lambda file: file.write_bytes(bytes(file.stat().st_size)) and None,
    "anybody may write": lambda file: file.chmod(0o666),
    "a link": replaced_by_a_link,
    "a pipe": replaced_by_a_pipe,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_or_foreign_file_is_made_anew(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    started(tmp_path)
    file = only(tmp_path)
    whole = file.read_bytes()
    damage(file)
    assert started(tmp_path) == len(IDS)
    assert file.read_bytes() == whole
    assert not file.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o600
    assert started(tmp_path) == 0


def test_another_prompts_file_under_this_name_is_not_taken(tmp_path: Path) -> None:
    other = IDS[::-1]
    for ids in (IDS, other):
        started(tmp_path, ids)
    files(tmp_path).path(other).replace(files(tmp_path).path(IDS))
    assert started(tmp_path, IDS) == len(IDS)


@pytest.mark.parametrize("call", ["fsync", "replace", "open"])
def test_a_full_disk_is_told_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, call: str
) -> None:
    real = os.open

    def full(*arguments: object, **_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def full_for_new(path: str, flags: int, *mode: int, **keywords: int) -> int:
        if flags & os.O_CREAT and ".partial" in str(path):
            full()
        return real(path, flags, *mode, **keywords)

    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
        patched.setattr(os, call, full_for_new if call == "open" else full)
        assert started(tmp_path) == len(IDS)
    assert list(tmp_path.iterdir()) == []
    assert "No space left" in caplog.text
    assert started(tmp_path) == len(IDS)
    assert started(tmp_path) == 0


def test_a_folder_that_cannot_be_had_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    with caplog.at_level(logging.WARNING):
        assert started(tmp_path / "file" / "folder") == len(IDS)
    assert "not kept for the next start" in caplog.text


def test_what_a_killed_process_left_does_not_matter(tmp_path: Path) -> None:
    left = files(tmp_path).path(IDS)
    left.with_name(f"{left.name}.{os.getpid()}.partial").write_bytes(b"half")
    assert started(tmp_path) == len(IDS)
    assert started(tmp_path) == 0
    assert only(tmp_path) == left


def test_the_files_of_a_folder_are_bounded_and_others_are_left_alone(tmp_path: Path) -> None:
    size = 40 + 4 * 90
    kept = files(tmp_path, most_bytes=3 * size)
    others = [tmp_path / name for name in ("model.gguf.packed-1-0123456789abcdef", "my.prompt-final")]
    for other in others:
        other.write_bytes(bytes(10 * size))
    stale = tmp_path / "old.gguf.prompt-0123456789abcdef.17.partial"
    stale.write_bytes(bytes(size))
    os.utime(stale, (1, 1))
    prompts = [[n] * 90 for n in range(5)]
    rows = np.zeros((90, 4), np.uint8)
    for age, ids in enumerate(prompts[:3]):
        kept.save(ids, rows)
        os.utime(kept.path(ids), (10 + age, 10 + age))
    assert not stale.exists()
    assert kept.load(prompts[0]) is not None
    for ids in prompts[3:]:
        kept.save(ids, rows)
    assert {n for n, ids in enumerate(prompts) if kept.path(ids).exists()} == {0, 3, 4}
    assert all(other.exists() for other in others)
    kept.save([9] * 900, np.zeros((900, 4), np.uint8))
    assert not kept.path([9] * 900).exists(), "larger than all of them may be"


def test_neither_the_ids_nor_their_text_are_in_a_file(tmp_path: Path) -> None:
    files(tmp_path).save(IDS, np.zeros((90, 4), np.uint8))
    content = only(tmp_path).read_bytes()
    assert np.array(IDS, "<i4").tobytes() not in content
    assert content[40:] == bytes(360)
