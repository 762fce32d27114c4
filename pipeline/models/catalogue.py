"""The models this project knows by name: what they are, where they come from, where they lie on this machine.

`catalogue.toml` beside this file lists them. An artifact is one file or a folder of files. The name of its
place in the cache holds its hash, so a changed catalogue never meets old bytes; a file in its place has been
verified.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import logging
import shutil
import threading
import tomllib
from collections.abc import Callable, Mapping
from functools import cache as remember
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, model_validator

from pipeline import places
from pipeline.models.fetch import (
    BLOCK,
    CacheFull,
    Hub,
    Packages,
    SourceFailed,
    Wanted,
    disk_full_as_cache_full,
)

log = logging.getLogger(__name__)

CATALOGUE = Path(__file__).with_name("catalogue.toml")

Progress = Callable[[int, int], None]
"""Called with (bytes of the artifact that are here, bytes in all); from any thread."""

State = Literal["verified", "absent", "damaged"]


class UnknownArtifact(KeyError):
    """No artifact has this name."""

    def __init__(self, name: str, known: list[str]) -> None:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known are: {', '.join(known)}"
        super().__init__(f"there is no model named {name!r}; {hint}")

    def __str__(self) -> str:
        return str(self.args[0])


class ArtifactUnavailable(Exception):
    """No source delivered the artifact. The message says what was tried, why each failed and what to do."""


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ArtifactFile(_Entry):
    """One file of an artifact. `package` and `member` may hold {n}, the part's number, counted from 1."""

    name: str
    size: int = Field(gt=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    package: str | None = None
    member: str | None = None
    parts: int = Field(default=1, ge=1)

    def package_parts(self) -> list[tuple[str, str]]:
        """(requirement, member of its wheel) of each part, in order."""
        assert self.package is not None
        assert self.member is not None
        numbers = range(1, self.parts + 1)
        return [(self.package.format(n=n), self.member.format(n=n)) for n in numbers]


class Artifact(_Entry):
    """One entry of the catalogue."""

    name: str
    role: Literal["recognition", "voice activity", "end of turn", "language", "voice"]
    about: str
    licence: str
    default: bool = False
    sources: tuple[Literal["hub", "packages", "installed"], ...]
    repository: str | None = None
    revision: str | None = None
    folder: str = ""
    file: tuple[ArtifactFile, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _has_what_its_sources_need(self) -> Artifact:
        if "hub" in self.sources and not (self.repository and self.revision):
            raise ValueError("the hub needs a repository and a revision")
        if "packages" in self.sources and not all(file.package and file.member for file in self.file):
            raise ValueError("packages need a package and a member for every file")
        if "installed" in self.sources and (len(self.sources), len(self.file)) != (1, 1):
            raise ValueError("an installed artifact is one file and has no other source")
        return self

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(file.size for file in self.file)

    @property
    def installed(self) -> bool:
        """Part of a package this project depends on: nothing to pull."""
        return self.sources == ("installed",)

    @property
    def place(self) -> Path:
        """The folder its files lie in."""
        if self.installed:
            return _installed_file(self.file[0]).parent
        digest = hashlib.sha256("".join(file.sha256 for file in self.file).encode()).hexdigest()[:12]
        return cache() / "models" / f"{self.name}-{digest}"

    @property
    def path(self) -> Path:
        """What a stage loads: the file itself where there is one, else the folder."""
        return self.place / self.file[0].name if len(self.file) == 1 else self.place

    def missing(self) -> list[ArtifactFile]:
        """Its files that are not here. A file that is here was verified when it was written."""
        return [file for file in self.file if not _has_size(self.place / file.name, file.size)]


def cache() -> Path:
    """Where models are kept: REJOINDER_CACHE, else the user's cache folder. Raises NoPlace."""
    return places.cache()


def converted() -> Path:
    """The folder for what is derived from models (converted weights). It may be deleted at any time."""
    return cache() / "converted"


@remember
def artifacts() -> Mapping[str, Artifact]:
    """Every artifact by name, in the catalogue's order."""
    entries = tomllib.loads(CATALOGUE.read_text("utf-8"))["artifact"]
    return {entry["name"]: Artifact.model_validate(entry) for entry in entries}


def get(name: str) -> Artifact:
    """The artifact of this name. Raises UnknownArtifact with the nearest name."""
    if name not in artifacts():
        raise UnknownArtifact(name, list(artifacts()))
    return artifacts()[name]


def defaults() -> list[Artifact]:
    """What the default agent needs."""
    return [artifact for artifact in artifacts().values() if artifact.default]


def path(name: str) -> Path:
    """The artifact's file, or its folder where it has several; pulled first when it is missing.

    Raises UnknownArtifact, ArtifactUnavailable and CacheFull.
    """
    artifact = get(name)
    if artifact.missing():
        pull(artifact)
    return artifact.path


def pull(artifact: Artifact, progress: Progress = lambda here, total: None) -> None:
    """Bring the artifact into the cache, unless it is there; waits while another process pulls it.

    Raises ArtifactUnavailable and CacheFull; what was fetched by then is kept for the next try.
    """
    if not artifact.missing():
        return
    if artifact.installed:
        raise ArtifactUnavailable(
            f"{artifact.name} is a file of an installed package ({artifact.file[0].member}) and is missing "
            "or has another size. Reinstall this project's dependencies."
        )
    locks = cache() / "locks"
    with disk_full_as_cache_full(cache(), artifact.size):
        locks.mkdir(parents=True, exist_ok=True)
        lock = FileLock(locks / f"{artifact.place.name}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            log.info("another process is pulling %s: waiting for it", artifact.name)
            lock.acquire()
        try:
            _Pull(artifact, progress).run()
        finally:
            lock.release()


def verify(artifact: Artifact, *, remove: bool = True) -> dict[str, State]:
    """Hash every file of the artifact. `remove`: damaged ones in the cache, so that a pull replaces them."""
    states: dict[str, State] = {}
    for file in artifact.file:
        here = artifact.place / file.name
        if not here.is_file():
            states[file.name] = "absent"
        elif here.stat().st_size == file.size and _sha256(here) == file.sha256:
            states[file.name] = "verified"
        else:
            states[file.name] = "damaged"
            if remove and not artifact.installed:
                here.unlink()
    return states


_hub = Hub()
_packages = Packages()


class _Pull:
    """One pull of one artifact, under its lock."""

    def __init__(self, artifact: Artifact, progress: Progress) -> None:
        self._artifact, self._progress = artifact, progress
        self._work = cache() / "partial" / artifact.place.name
        self._lock = threading.Lock()
        self._here = {file.name: file.size for file in artifact.file}

    def run(self) -> None:
        missing = self._artifact.missing()
        for file in missing:
            self._here[file.name] = 0
        self._demand_room(1)
        for file in missing:
            self._bring(file)
        shutil.rmtree(self._work, ignore_errors=True)

    def _demand_room(self, times: int) -> None:
        """Raises CacheFull where what is missing does not fit so many times."""
        kept = sum(file.stat().st_size for file in self._work.rglob("*") if file.is_file())
        needed = times * sum(file.size for file in self._artifact.missing()) - kept
        if shutil.disk_usage(cache()).free < needed:
            raise CacheFull(cache(), needed)

    def _bring(self, file: ArtifactFile) -> None:
        wanted = Wanted(self._artifact.place / file.name, file.size, file.sha256)
        failures: list[str] = []
        for source in self._artifact.sources:
            try:
                self._fetch(source, file, wanted)
                return
            except SourceFailed as failure:
                failures.append(f"  - {self._describe(source, file)}: {failure}")
        raise ArtifactUnavailable(_unavailable(self._artifact, file, failures))

    def _fetch(self, source: str, file: ArtifactFile, wanted: Wanted) -> None:
        def report(here: int) -> None:
            with self._lock:
                self._here[file.name] = here
                self._progress(sum(self._here.values()), self._artifact.size)

        if source == "hub":
            assert self._artifact.repository is not None
            assert self._artifact.revision is not None
            path = f"{self._artifact.folder}/{file.name}".lstrip("/")
            _hub.fetch(self._artifact.repository, self._artifact.revision, path, wanted, self._work, report)
        else:
            self._demand_room(2)  # the packages are kept until the model is whole
            _packages.fetch(file.package_parts(), wanted, self._work, report)

    def _describe(self, source: str, file: ArtifactFile) -> str:
        if source == "hub":
            return f"hub, {self._artifact.repository} at {self._artifact.revision}"
        return f"package index, {file.package_parts()[0][0]}" + (
            f" and {file.parts - 1} more" if file.parts > 1 else ""
        )


def _unavailable(artifact: Artifact, file: ArtifactFile, failures: list[str]) -> str:
    return "\n".join(
        [
            f"cannot get {file.name} of {artifact.name} ({file.size / 1e6:,.0f} MB). Tried:",
            *failures,
            "What to do: check the network. Behind a proxy set HTTPS_PROXY; behind a company mirror set "
            "HF_ENDPOINT (the hub's address) or pip's index (PIP_INDEX_URL or pip.conf). Then run "
            f"`rejoinder models pull {artifact.name}` again: what was already fetched is kept.",
        ]
    )


def _has_size(file: Path, size: int) -> bool:
    return file.is_file() and file.stat().st_size == size


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _installed_file(file: ArtifactFile) -> Path:
    """Where an installed package keeps the file; the package is located, not imported."""
    assert file.member is not None
    package, _, inside = file.member.partition("/")
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ArtifactUnavailable(
            f"the package {package} is not installed; reinstall this project's dependencies."
        )
    return Path(spec.submodule_search_locations[0]) / inside
