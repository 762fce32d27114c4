"""Agents' prompts on disk: the keys and values of each in a file beside the packed weights.

    8 bytes   magic "RJPROMPT"
    32 bytes  SHA-256 of all that the file stands for: the weights, the engine, the ids, the bytes behind
    the rest  uint8 [positions, bytes of one]

Neither the ids nor the text are in a file, but keys and values tell them to who has the model, so files are
for their owner's eyes alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from llm.checkpoints import fingerprint
from llm.targets.base import CopyableTarget, KeysAndValues, Target

logger = logging.getLogger(__name__)

MOST_BYTES = 512 << 20
"""Of all files of a folder together; the longest unused are removed."""

_MAGIC = b"RJPROMPT"
_HEADER = len(_MAGIC) + hashlib.sha256().digest_size
_FILE = re.compile(r".+\.prompt-[0-9a-f]{16}(\.\d+\.partial)?")
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


class PromptFiles:
    """The files of one model's prompts. Nothing that happens to them is an error: a prompt is read anew."""

    def __init__(
        self, folder: Path, name: str, key: str, position_bytes: int, most_bytes: int = MOST_BYTES
    ) -> None:
        """`name` begins the files' names. `key`: all that the bytes depend on besides the ids."""
        self._folder = folder
        self._name = name
        self._key = key
        self._position_bytes = position_bytes
        self._most_bytes = most_bytes

    @classmethod
    def of(cls, checkpoint: Path, target: Target, folder: Path | None) -> PromptFiles | None:
        """In `folder`, or beside the checkpoint; None for a target whose bits cannot be named for later."""
        if not isinstance(target, CopyableTarget) or not target.arithmetic:
            return None
        key = f"{fingerprint(checkpoint)} {target.arithmetic}"
        return cls(folder or checkpoint.parent, checkpoint.name, key, target.position_bytes)

    def path(self, ids: Sequence[int]) -> Path:
        digest = hashlib.sha256(self._what(ids)).hexdigest()[:16]
        return self._folder / f"{self._name}.prompt-{digest}"

    def load(self, ids: Sequence[int]) -> KeysAndValues | None:
        """Keys and values of these ids; None where there is no whole file of this user's own."""
        path = self.path(ids)
        try:
            content = self._content(path, len(ids))
        except OSError:
            return None
        data = memoryview(content)[_HEADER:]
        if content[:_HEADER] != self._header(ids, data):
            logger.warning("%s is damaged or not ours; it is made anew", path)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return np.frombuffer(data, np.uint8).reshape(len(ids), self._position_bytes)

    def save(self, ids: Sequence[int], read: KeysAndValues) -> None:
        """Write a file, whole or not at all, and remove the longest unused beyond the limit."""
        data = np.ascontiguousarray(read).data
        path = self.path(ids)
        if _HEADER + data.nbytes > self._most_bytes:
            return
        temporary = path.with_name(f"{path.name}.{os.getpid()}.partial")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            temporary.unlink(missing_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with open(os.open(temporary, flags, stat.S_IRUSR | stat.S_IWUSR), "wb") as stream:
                stream.write(self._header(ids, data))
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
            self._remove_old()
        except OSError as error:
            logger.warning("a prompt is not kept for the next start: %s", error)
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)

    def _content(self, path: Path, positions: int) -> bytes:
        """Raises `OSError` unless it is a file of the right size that this user alone may write."""
        size = _HEADER + positions * self._position_bytes
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            found = os.fstat(stream.fileno())
            private = found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_MAY_WRITE
            if not stat.S_ISREG(found.st_mode) or not private or found.st_size != size:
                raise OSError(f"{path} is not ours")
            return stream.read(size)

    def _remove_old(self) -> None:
        files = [(file, file.stat()) for file in self._folder.iterdir() if _FILE.fullmatch(file.name)]
        total = sum(found.st_size for _, found in files)
        for file, found in sorted(files, key=lambda each: each[1].st_mtime_ns):
            if total <= self._most_bytes:
                return
            file.unlink(missing_ok=True)
            total -= found.st_size

    def _what(self, ids: Sequence[int]) -> bytes:
        return f"{self._key} {self._position_bytes} {len(ids)}\n".encode() + np.asarray(ids, "<i4").tobytes()

    def _header(self, ids: Sequence[int], data: memoryview) -> bytes:
        digest = hashlib.sha256(self._what(ids))
        digest.update(data)
        return _MAGIC + digest.digest()
