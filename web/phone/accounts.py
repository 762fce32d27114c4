"""The carriers' REST interfaces as far as the settings have what they need."""

from __future__ import annotations

import asyncio
import logging

import httpx
from pydantic import SecretStr

from pipeline.config import Settings
from pipeline.text_files import read_text
from web.phone.bridge import HangUp
from web.phone.rest import CarrierApi, CarrierRefused, PlivoApi, TelnyxApi, TwilioApi, VonageApi
from web.phone.signatures import MissingPackage
from web.phone.wire import Started

log = logging.getLogger("rejoinder.phone")


def secret(value: SecretStr | None) -> str:
    """A secret's text, empty where it is not set."""
    return value.get_secret_value() if value is not None else ""


def api_of(
    carrier: str, settings: Settings, client: httpx.AsyncClient, *, account: str = ""
) -> CarrierApi | None:
    """The carrier's REST interface; None where it has none or the settings lack its credentials.

    `account`: Twilio's account SID, which a stream tells. Raises OSError and NotUtf8 for a key file that
    cannot be read.
    """
    if carrier == "twilio" and settings.twilio_auth_token and account:
        return TwilioApi(client, account, secret(settings.twilio_auth_token))
    if carrier == "telnyx" and settings.telnyx_api_key:
        return TelnyxApi(client, secret(settings.telnyx_api_key))
    if carrier == "plivo" and settings.plivo_auth_id and settings.plivo_auth_token:
        return PlivoApi(
            client, settings.plivo_auth_id, secret(settings.plivo_auth_token), settings.public_url
        )
    if carrier == "vonage" and settings.vonage_application_id and settings.vonage_private_key:
        key = read_text(settings.vonage_private_key)
        return VonageApi(client, settings.vonage_application_id, key)
    return None


def hang_up_at(carrier: str, settings: Settings, client: httpx.AsyncClient) -> HangUp:
    """Ends telephone calls at the carrier; where that cannot be done, the log says why."""

    async def hang_up(started: Started) -> None:
        try:
            api = api_of(carrier, settings, client, account=started.account)
            if api is not None and started.call_id:
                await api.hang_up(started.call_id)
        except (CarrierRefused, MissingPackage, OSError, ValueError) as error:
            log.error("%s call %s was not hung up: %s", carrier, started.call_id, error)
        except asyncio.CancelledError:
            log.error("%s call %s was not hung up: the service was stopped before", carrier, started.call_id)
            raise

    return hang_up


class HangUps:
    """The telephone calls that are being hung up, which goes on after the end of our call: a carrier may have
    to be asked several times."""

    def __init__(self) -> None:
        self._running: set[asyncio.Future[None]] = set()

    def counted(self, hang_up: HangUp) -> HangUp:
        """The same, known here while it runs."""

        async def run(started: Started) -> None:
            task = asyncio.ensure_future(hang_up(started))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
            await asyncio.wait([task])
            if not task.cancelled():
                task.result()

        return run

    async def finish(self, grace_seconds: float) -> None:
        """Wait until all are done, at most so long; then give the others up."""
        if not self._running:
            return
        _, late = await asyncio.wait(self._running, timeout=grace_seconds)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
