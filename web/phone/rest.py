"""What is done to a telephone call by the carrier's REST interface: hang it up, put it through to a number.

Both may be repeated without harm: a call that is over already counts as hung up, and Telnyx is given an id of
the command.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import httpx

from web.phone import documents
from web.phone.signatures import MissingPackage

log = logging.getLogger("rejoinder.phone")

_ATTEMPTS = 4
_FIRST_WAIT = 0.3
_LONGEST_WAIT = 5.0
_TIMEOUT = httpx.Timeout(10.0, connect=5.0)


class CarrierRefused(Exception):
    """The carrier did not do it; the message has its status and words."""


@dataclass(frozen=True, slots=True)
class Command:
    """One request. `gone`: answers that mean that the call is over already, as (status, code in the body or
    None)."""

    method: str
    url: str
    gone: tuple[tuple[int, int | None], ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


class CarrierApi(ABC):
    """One carrier account. `client`: shared by all calls; `sleep`: injected by tests."""

    def __init__(
        self, client: httpx.AsyncClient, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._client = client
        self._sleep = sleep

    async def hang_up(self, call_id: str) -> None:
        """End the telephone call. Raises CarrierRefused."""
        await self._do(self._hang_up(call_id))

    async def transfer(self, call_id: str, to: str) -> None:
        """Put the caller through to a number (E.164), leaving our stream. Raises CarrierRefused."""
        await self._do(self._transfer(call_id, to))

    @abstractmethod
    def _hang_up(self, call_id: str) -> Command: ...

    @abstractmethod
    def _transfer(self, call_id: str, to: str) -> Command: ...

    async def _do(self, command: Command) -> None:
        wait = _FIRST_WAIT
        for attempt in range(_ATTEMPTS):
            problem = await self._try(command)
            if problem is None:
                return
            if attempt + 1 < _ATTEMPTS:
                log.info("%s %s: %s; trying again", command.method, command.url, problem)
                await self._sleep(wait)
                wait = min(wait * 3, _LONGEST_WAIT)
        raise CarrierRefused(f"{problem} ({_ATTEMPTS} attempts)")

    async def _try(self, command: Command) -> str | None:
        """None when it is done; else what may pass. Raises CarrierRefused for what will not."""
        try:
            answer = await self._client.request(
                command.method, command.url, timeout=_TIMEOUT, **command.options
            )
        except (httpx.TransportError, httpx.DecodingError) as error:
            return f"{type(error).__name__}: {error}"
        except (httpx.HTTPError, httpx.InvalidURL, RuntimeError) as error:  # closed clients raise the last
            raise CarrierRefused(f"{type(error).__name__}: {error}") from error
        if answer.is_success or _is_gone(answer, command.gone):
            return None
        said = f"the carrier answered {answer.status_code}: {answer.text[:200]}"
        if answer.status_code == 429 or answer.status_code >= 500:
            return said
        raise CarrierRefused(said)


def _is_gone(answer: httpx.Response, gone: tuple[tuple[int, int | None], ...]) -> bool:
    return any(
        answer.status_code == status and (code is None or str(code) in answer.text) for status, code in gone
    )


class TwilioApi(CarrierApi):
    """`token`: the account's auth token."""

    def __init__(self, client: httpx.AsyncClient, account: str, token: str, **more: Any) -> None:
        super().__init__(client, **more)
        self._account, self._token = account, token

    def _hang_up(self, call_id: str) -> Command:
        return self._update(call_id, {"Status": "completed"})

    def _transfer(self, call_id: str, to: str) -> Command:
        return self._update(call_id, {"Twiml": documents.dial_twiml(to)})

    def _update(self, call_id: str, fields: dict[str, str]) -> Command:
        return Command(
            "POST",
            f"https://api.twilio.com/2010-04-01/Accounts/{quote(self._account)}/Calls/{quote(call_id)}.json",
            gone=((404, 20404),),
            options={"auth": (self._account, self._token), "data": fields},
        )


class TelnyxApi(CarrierApi):
    def __init__(self, client: httpx.AsyncClient, api_key: str, **more: Any) -> None:
        super().__init__(client, **more)
        self._api_key = api_key

    def _hang_up(self, call_id: str) -> Command:
        return self._action(call_id, "hangup", {})

    def _transfer(self, call_id: str, to: str) -> Command:
        return self._action(call_id, "transfer", {"to": to})

    def _action(self, call_id: str, action: str, fields: dict[str, str]) -> Command:
        command_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{call_id}/{action}/{fields}"))
        return Command(
            "POST",
            f"https://api.telnyx.com/v2/calls/{quote(call_id, safe='')}/actions/{action}",
            gone=((422, 90018), (404, None)),
            options={
                "headers": {"Authorization": f"Bearer {self._api_key}"},
                "json": {**fields, "command_id": command_id},
            },
        )


class PlivoApi(CarrierApi):
    """`public_url`: ours, where Plivo fetches the document of a transfer."""

    def __init__(
        self, client: httpx.AsyncClient, auth_id: str, token: str, public_url: str, **more: Any
    ) -> None:
        super().__init__(client, **more)
        self._auth_id, self._token, self._public_url = auth_id, token, public_url

    def _hang_up(self, call_id: str) -> Command:
        return self._call("DELETE", call_id)

    def _transfer(self, call_id: str, to: str) -> Command:
        if not self._public_url:
            raise CarrierRefused("a transfer at Plivo needs public_url: Plivo fetches its document there")
        url = f"{self._public_url.rstrip('/')}/phone/plivo/dial?{urlencode({'to': to})}"
        return self._call("POST", call_id, json={"legs": "aleg", "aleg_url": url, "aleg_method": "GET"})

    def _call(self, method: str, call_id: str, **options: Any) -> Command:
        return Command(
            method,
            f"https://api.plivo.com/v1/Account/{quote(self._auth_id)}/Call/{quote(call_id)}/",
            gone=((404, None),),
            options={"auth": (self._auth_id, self._token), **options},
        )


class VonageApi(CarrierApi):
    """`private_key`: the application's, in PEM; every request carries a JWT signed with it (RS256)."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        application_id: str,
        private_key: str,
        *,
        now: Callable[[], float] = time.time,
        **more: Any,
    ) -> None:
        super().__init__(client, **more)
        self._application_id, self._private_key, self._now = application_id, private_key, now

    def _hang_up(self, call_id: str) -> Command:
        return self._update(call_id, {"action": "hangup"})

    def _transfer(self, call_id: str, to: str) -> Command:
        return self._update(
            call_id,
            {"action": "transfer", "destination": {"type": "ncco", "ncco": documents.dial_ncco(to)}},
        )

    def _update(self, call_id: str, body: dict[str, Any]) -> Command:
        return Command(
            "PUT",
            f"https://api.nexmo.com/v1/calls/{quote(call_id)}",
            gone=((404, None),),
            options={"headers": {"Authorization": f"Bearer {self._jwt()}"}, "json": body},
        )

    def _jwt(self) -> str:
        issued = int(self._now())
        claims = {
            "application_id": self._application_id,
            "iat": issued,
            "exp": issued + 300,
            "jti": str(uuid.uuid4()),
        }
        return rs256_jwt(claims, self._private_key)


def rs256_jwt(claims: dict[str, Any], private_key: str) -> str:
    """A JWT signed with an RSA key in PEM. Raises MissingPackage, or ValueError for a key that is none."""
    try:
        import jwt
    except ImportError:
        raise MissingPackage("vonage_private_key") from None
    try:
        return jwt.encode(claims, private_key, algorithm="RS256")
    except NotImplementedError:  # without cryptography
        raise MissingPackage("vonage_private_key") from None
    except (jwt.InvalidKeyError, TypeError) as error:
        raise ValueError("vonage_private_key is not an RSA key") from error
