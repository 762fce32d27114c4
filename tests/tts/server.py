"""A speech server on a local socket that answers as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np


@dataclass
class Script:
    """What the server does, request by request: the last entry repeats."""

    statuses: list[int] = field(default_factory=lambda: [200])
    content_type: str = "audio/pcm"
    body: bytes = b""
    piece: int = 1001  # bytes a write: odd, so that samples are cut in two
    break_after: int | None = None  # bytes after which the connection is closed early
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


def tone(seconds: float = 1.0, sample_rate: int = 24_000, *, lead: float = 0.2) -> bytes:
    """A tone after `lead` seconds of silence, 16-bit PCM."""
    time = np.arange(int(seconds * sample_rate)) / sample_rate
    wave = 0.4 * np.sin(2 * np.pi * 220 * time)
    audio = np.concatenate([np.zeros(int(lead * sample_rate)), wave, np.zeros(int(0.5 * sample_rate))])
    return (audio * 32767).astype("<i2").tobytes()


@contextmanager
def speech_server(script: Script) -> Iterator[str]:
    """The server's `/v1` address while it runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            script.requests.append(json.loads(body) | {"path": self.path})
            script.headers.append(dict(self.headers))
            status = script.statuses.pop(0) if len(script.statuses) > 1 else script.statuses[0]
            self.send_response(status)
            self.send_header("Content-Type", script.content_type)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            sent = 0
            for begin in range(0, len(script.body), script.piece):
                if script.break_after is not None and sent >= script.break_after:
                    self.close_connection = True
                    return
                data = script.body[begin : begin + script.piece]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                sent += len(data)
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A voice that was cancelled hangs up in the middle: nothing to print."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
