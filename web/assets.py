"""The browser page and its parts, read once when the server starts."""

from __future__ import annotations

from pathlib import Path

from websockets.http11 import Request, Response

from web.routes import Admission, PageHandler, Routes, respond

FOLDER = Path(__file__).with_name("pages")
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Permissions-Policy": "microphone=(self)",
    "Referrer-Policy": "no-referrer",
}
"""Nothing from elsewhere, no inline script; the token in the page's address goes to nobody."""


def mount(routes: Routes, admit: Admission) -> None:
    """Add `/` and every file beside it, for those whom `admit` lets in.

    Only these exact names exist, so no path leads out of the folder.
    """
    for file in sorted(FOLDER.iterdir()):
        if file.suffix in _TYPES:
            path = "/" if file.name == "index.html" else f"/{file.name}"
            routes.page(path, _page(file.read_bytes(), _TYPES[file.suffix], admit))


def _page(body: bytes, content_type: str, admit: Admission) -> PageHandler:
    async def handler(request: Request) -> Response:
        return admit(request) or respond(body, content_type, headers=_HEADERS)

    return handler
