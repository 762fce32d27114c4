"""Nothing calls home: a whole call on a fresh home, and every connection that any of its processes tries.

The kernel's own record (strace) sees what no library can hide: native code's sockets and look-ups of names.
A proxy that the environment names takes what would go through one, and says where to.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import soundfile

from fixtures.questions import QUESTIONS
from fixtures.speech import caller_voice, speak
from pipeline import places
from pipeline.models import catalogue
from tests.machine import program

ROOT = Path(__file__).parents[2]
PATIENCE = 100.0
SMALL = ["--llm", "smallest", "--asr-model", "whisper-tiny.en"]
OURS = ("smollm2-135m", "whisper-tiny.en", "smart-turn-v3.2")
COMMAND = [sys.executable, "-c", "from web.cli import run; run()"]
NAME_SERVICE_PORTS = {53, 853, 5353, 5355}

SOCKET_ADDRESS = re.compile(
    r'sin6?_port=htons\((?P<port>\d+)\).*?(?:inet_addr\(|inet_pton\(AF_INET6, )"(?P<address>[^"]+)"'
)
LOOPBACK = re.compile(r"127\.|::1$|::ffff:127\.")
NAME_SERVICE_SOCKET = re.compile(r'sun_path="[^"]*(?:resolve|nscd)')


class RecordingProxy(socketserver.ThreadingTCPServer):
    """An HTTP proxy that lets nothing through and keeps the first line of every request."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Refuse)
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Refuse(socketserver.StreamRequestHandler):
    server: RecordingProxy

    def handle(self) -> None:
        self.server.asked.append(self.rfile.readline().decode("latin-1").strip())
        self.wfile.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


@pytest.fixture
def proxy() -> Iterator[RecordingProxy]:
    with RecordingProxy() as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def fresh(home: Path, proxy: RecordingProxy, **variables: str) -> dict[str, str]:
    """The environment of somebody who has just come, behind a proxy, and has switched nothing off."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("XDG_", "REJOINDER_", "ORT_", "HF_", "OTEL_"))
        and name not in ("TRAINER_TELEMETRY", "DISABLE_TELEMETRY", "DO_NOT_TRACK", "CI")
        and not name.lower().endswith("_proxy")
    }
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    through = {form: proxy.url for name in names for form in (name, name.lower())}
    return {**kept, **through, "HOME": str(home), "PYTHONPATH": str(ROOT), **variables}


def traced(record: Path, arguments: Sequence[str]) -> list[str]:
    """The command under strace; `record` gets every address that it or a child names to the system."""
    options = "-f --seccomp-bpf -qq -s 256 -e signal=none -e trace=connect,sendto,sendmsg,sendmmsg"
    return [program("strace"), *options.split(), "-o", str(record), *arguments]


def left_the_machine(record: Path) -> list[str]:
    """The lines that name an address elsewhere, or a name service, wherever that runs."""
    leaving = []
    for line in record.read_text(errors="replace").splitlines():
        found = SOCKET_ADDRESS.search(line)
        if found is not None:
            here = LOOPBACK.match(found["address"]) is not None
            if not here or int(found["port"]) in NAME_SERVICE_PORTS:
                leaving.append(line)
        elif NAME_SERVICE_SOCKET.search(line):
            leaving.append(line)
    return leaving


@contextlib.contextmanager
def serving(command: list[str], environment: dict[str, str], folder: Path) -> Iterator[str]:
    """The address at which the service takes calls; it is ended in order behind the block."""
    process = subprocess.Popen(
        command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    try:
        shown = ""
        for line in process.stdout:
            shown += line
            if (found := re.search(r"Open (http://\S+/)", line)) is not None:
                break
        else:
            pytest.fail(f"it ended: {shown}")
        yield found[1]
        (service,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(service), signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def test_a_whole_call_leaves_the_machine_alone(tmp_path: Path, home: Path, proxy: RecordingProxy) -> None:
    for name in OURS:
        catalogue.path(name)
    question = tmp_path / "question.wav"
    soundfile.write(question, speak(caller_voice("hibari"), QUESTIONS[0].text), 16_000)
    environment = fresh(home, proxy, REJOINDER_CACHE=str(places.cache()))
    records = [tmp_path / "serve.strace", tmp_path / "talk.strace"]
    serve = traced(records[0], [*COMMAND, "serve", "--port", "0", *SMALL])
    with serving(serve, environment, home) as address:
        talk = traced(records[1], [*COMMAND, "talk", str(question), "--url", address, "--json"])
        talked = subprocess.run(
            talk, env=environment, cwd=home, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    assert talked.returncode == 0, talked.stderr
    assert '"reply": "' in talked.stdout
    for record in records:
        assert left_the_machine(record) == []
    assert SOCKET_ADDRESS.search(records[1].read_text()), "the call itself was seen"
    assert proxy.asked == []
    kept = {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}
    assert kept <= {f".local/share/rejoinder/latency.db{end}" for end in ("", "-wal", "-shm")}


def test_models_come_from_where_the_readme_says_and_nothing_else_is_asked(
    tmp_path: Path, home: Path, proxy: RecordingProxy
) -> None:
    environment = fresh(
        home, proxy, REJOINDER_CACHE=str(tmp_path / "cache"), PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path)
    )
    record = tmp_path / "pull.strace"
    pulled = subprocess.run(
        traced(record, [*COMMAND, "models", "pull", "whisper-tiny.en"]),
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert pulled.returncode == 1, "neither source delivers here"
    assert left_the_machine(record) == []
    assert set(proxy.asked) == {"CONNECT huggingface.co:443 HTTP/1.1"}


@pytest.mark.parametrize(
    "code",
    [
        "socket.create_connection(('192.0.2.1', 9), 0.1)",
        "socket.create_connection(('2001:db8::1', 9), 0.1)",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'?', ('192.0.2.1', 53))",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'?', ('127.0.0.53', 53))",
        "ctypes.CDLL(None).getaddrinfo(b'example.com', b'80', None, ctypes.byref(ctypes.c_void_p()))",
    ],
)
def test_the_record_shows_what_leaves_the_machine(tmp_path: Path, code: str) -> None:
    record = tmp_path / "strace"
    lines = f"import contextlib, ctypes, socket\nwith contextlib.suppress(OSError): {code}"
    subprocess.run(traced(record, [sys.executable, "-c", lines]), check=True, timeout=PATIENCE)
    if "getaddrinfo" in code and not Path("/etc/resolv.conf").exists():
        pytest.skip("this machine has no name service to ask")
    assert left_the_machine(record)


IMPORTED = """
import importlib, os, sys
WATCHED = {"onnxruntime": "ORT_DISABLE_TELEMETRY", "huggingface_hub": "HF_HUB_DISABLE_TELEMETRY"}
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in WATCHED:
            assert os.environ.get(WATCHED[name]) == "1", f"{name} is imported before it is told"
            print(name)
sys.meta_path.insert(0, Watch())
for module in sys.argv[1:]:
    importlib.import_module(module)
"""


@pytest.mark.parametrize(
    "modules",
    [
        ["asr.vad"],
        ["asr.end_of_turn"],
        ["asr.whisper"],
        ["tts.load"],
        ["tts.coqui", "huggingface_hub"],
        ["llm.language_model", "transformers", "huggingface_hub"],  # it imports them when they are needed
        ["bench.asr"],
    ],
)
def test_whatever_is_imported_first_the_libraries_are_told_before(modules: list[str], home: Path) -> None:
    with RecordingProxy() as nobody:
        environment = fresh(home, nobody)
    ran = subprocess.run(
        [sys.executable, "-c", IMPORTED, *modules],
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split(), "they import one of the libraries"
    assert [path for path in home.rglob("*") if path.is_file()] == []
