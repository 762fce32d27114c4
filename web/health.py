"""`/healthz`: the process answers. `/readyz`: it can take a call now."""

from __future__ import annotations

from http import HTTPStatus

from web.routes import Request, Response, Routes, respond_json
from web.switchboard import Switchboard


def mount(routes: Routes, switchboard: Switchboard) -> None:
    """Add both pages. Neither needs a token: orchestrators ask them."""

    async def alive(_: Request) -> Response:
        return respond_json({"status": "ok"})

    async def ready(_: Request) -> Response:
        service = switchboard.service
        state = {
            "ready": switchboard.ready,
            "calls": switchboard.running,
            "max_calls": service.settings.max_calls if service else None,
        }
        status = HTTPStatus.OK if switchboard.ready else HTTPStatus.SERVICE_UNAVAILABLE
        return respond_json(state, status=status)

    routes.page("/healthz", alive)
    routes.page("/readyz", ready)
