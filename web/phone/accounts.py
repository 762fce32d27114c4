"""The carriers' REST interfaces as far as the settings have what they need."""

from __future__ import annotations

import logging

import httpx

from web.phone.bridge import HangUp
from web.phone.rest import CarrierApi, CarrierRefused, PlivoApi, TelnyxApi, TwilioApi, VonageApi
from web.phone.settings import PhoneSettings, secret
from web.phone.signatures import MissingPackage
from web.phone.wire import Started

log = logging.getLogger("rejoinder.phone")


def api_of(
    carrier: str, settings: PhoneSettings, client: httpx.AsyncClient, *, account: str = ""
) -> CarrierApi | None:
    """The carrier's REST interface; None where it has none or the settings lack its credentials.

    `account`: Twilio's account SID, which a stream tells. Raises OSError for a key file that cannot be read.
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
        key = settings.vonage_private_key.expanduser().read_text("ascii")
        return VonageApi(client, settings.vonage_application_id, key)
    return None


def hang_up_at(carrier: str, settings: PhoneSettings, client: httpx.AsyncClient) -> HangUp:
    """Ends telephone calls at the carrier; where that cannot be done, the log says why."""

    async def hang_up(started: Started) -> None:
        try:
            api = api_of(carrier, settings, client, account=started.account)
            if api is not None and started.call_id:
                await api.hang_up(started.call_id)
        except (CarrierRefused, MissingPackage, OSError, ValueError) as error:
            log.error("%s call %s was not hung up: %s", carrier, started.call_id, error)

    return hang_up
