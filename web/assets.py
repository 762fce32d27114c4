"""The browser page and its parts, read once when the server starts."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

from web.routes import Admission, PageHandler, Request, Response, Routes, respond

FOLDER = Path(__file__).with_name("pages")
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_INLINE_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


def mount(routes: Routes, admit: Admission) -> None:
    """Add `/` and every file beside it, for those whom `admit` lets in.

    Only these exact names exist, so no path leads out of the folder.
    """
    for file in sorted(FOLDER.iterdir()):
        if file.suffix in _TYPES:
            path = "/" if file.name == "index.html" else f"/{file.name}"
            routes.page(path, _page(file.read_bytes(), _TYPES[file.suffix], admit))


def _headers(body: bytes) -> dict[str, str]:
    """Nothing from elsewhere, and no inline script but the page's own; the token in its address goes to
    nobody."""
    digests = [hashlib.sha256(script).digest() for script in _INLINE_SCRIPT.findall(body)]
    scripts = " ".join(["'self'", *(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)])
    return {
        "Content-Security-Policy": (
            f"default-src 'none'; script-src {scripts}; worker-src 'self'; style-src 'self'; img-src 'self'; "
            "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
        "Permissions-Policy": "microphone=(self)",
        "Referrer-Policy": "no-referrer",
    }


def _page(body: bytes, content_type: str, admit: Admission) -> PageHandler:
    headers = _headers(body)

    async def handler(request: Request) -> Response:
        return admit(request) or respond(body, content_type, headers=headers)

    return handler
