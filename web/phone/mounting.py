"""Puts the phone bridge on the server: who may open which socket, and what webhooks are answered."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlencode, urlsplit

import httpx

from pipeline.config import Settings
from pipeline.telemetry.latency_log import mask_number
from web.phone import documents, signatures
from web.phone.accounts import HangUps, hang_up_at, secret
from web.phone.asterisk import Asterisk
from web.phone.audiosocket import AudioSocketListener
from web.phone.bridge import HangUp, PhoneFrontEnd
from web.phone.plivo import Plivo
from web.phone.signatures import MissingPackage, ReplayGuard
from web.phone.telnyx import Telnyx
from web.phone.twilio import Twilio
from web.phone.vonage import Vonage
from web.phone.wire import BadMessage, Carrier, json_object, text
from web.routes import PageHandler, Request, Response, Routes, SocketHandler, respond, respond_text
from web.sockets import Socket
from web.switchboard import Switchboard

log = logging.getLogger("rejoinder.phone")


def mount(routes: Routes, switchboard: Switchboard, settings: Settings) -> Phones:
    """Add the carriers' sockets and webhooks to the server."""
    phones = Phones(switchboard, settings)
    for carrier in phones.carriers():
        routes.socket(f"/phone/{carrier.name}", phones.handler(carrier), admit=carrier.admit)
        for path, answer in carrier.webhooks.items():
            routes.webhook(f"/phone/{carrier.name}/{path}", _webhook(carrier, answer))
    return phones


Answer = Callable[[Request, Mapping[str, str]], tuple[str, str]]
"""What a webhook is answered: type and body, from the parameters of its address and of what was posted."""


@dataclass(frozen=True, slots=True)
class MountedCarrier:
    """How one carrier is served.

    `needs`: the setting without which nobody is believed to be this carrier; None when it is set.
    `webhooks`: by the last part of their path.
    """

    name: str
    translation: Callable[[Request], Carrier]
    genuine: Callable[[Request], bool]
    needs: str | None
    webhooks: Mapping[str, Answer]
    unsigned: bool

    def admit(self, request: Request) -> Response | None:
        """Refuse what does not come from the carrier."""
        if self.unsigned:
            # Carriers tell no origin. Any page that is open on this machine could call else.
            page = request.headers.get("Origin") is not None
            return respond_text("not for pages", status=HTTPStatus.FORBIDDEN) if page else None
        if self.needs is not None:
            log.warning(
                "%s asks for %s, but %s is not set", self.name, urlsplit(request.path).path, self.needs
            )
            return respond_text(f"{self.name} is not set up here", status=HTTPStatus.FORBIDDEN)
        try:
            genuine = self.genuine(request)
        except MissingPackage as missing:
            log.error("%s", missing)
            genuine = False
        if genuine:
            return None
        log.warning("%s: a request for %s without a valid signature", self.name, urlsplit(request.path).path)
        return respond_text("the signature is missing or wrong", status=HTTPStatus.FORBIDDEN)


class Phones:
    """The carriers that this server answers. `start` and `stop` belong to the server's own."""

    def __init__(self, switchboard: Switchboard, settings: Settings) -> None:
        self._switchboard = switchboard
        self._settings = settings
        self._client = httpx.AsyncClient()
        self._guard = ReplayGuard()
        self._hang_ups = HangUps()
        self._audiosocket: AudioSocketListener | None = None

    async def start(self) -> None:
        """Listen for AudioSocket connections, where a port is set. Raises OSError."""
        if self._settings.audiosocket_port:
            self._audiosocket = AudioSocketListener(
                self._front_end("audiosocket"), send_timeout=self._settings.send_timeout_seconds
            )
            await self._audiosocket.start(self._settings.audiosocket_port)

    async def stop(self, grace_seconds: float) -> None:
        """Stop listening; the calls are the switchboard's to end.

        `grace_seconds`: for the telephone calls that are being hung up.
        """
        if self._audiosocket is not None:
            await self._audiosocket.stop()
        await self._hang_ups.finish(grace_seconds)
        await self._client.aclose()

    def handler(self, carrier: MountedCarrier) -> SocketHandler:
        front_end = self._front_end(carrier.name)

        async def handle(socket: Socket, request: Request) -> None:
            await front_end.serve(socket, carrier.translation(request))

        return handle

    def _front_end(self, carrier: str) -> PhoneFrontEnd:
        return PhoneFrontEnd(
            self._switchboard,
            shown=mask_number if self._settings.mask_caller_numbers else str,
            hang_up=self.hang_up_at(carrier),
        )

    def hang_up_at(self, carrier: str) -> HangUp:
        """Ends telephone calls at the carrier, and has `stop` wait for that."""
        return self._hang_ups.counted(hang_up_at(carrier, self._settings, self._client))

    def carriers(self) -> list[MountedCarrier]:
        settings, unsigned = self._settings, self._settings.phone_unsigned
        return [
            MountedCarrier(
                "twilio",
                lambda request: Twilio(),
                self._is_twilio,
                None if settings.twilio_auth_token else "twilio_auth_token",
                {"voice": self._twilio_voice},
                unsigned,
            ),
            MountedCarrier(
                "telnyx",
                lambda request: Telnyx(),
                self._is_telnyx,
                None
                if settings.telnyx_public_key or settings.telnyx_stream_token
                else "telnyx_public_key or telnyx_stream_token",
                {"voice": self._telnyx_voice},
                unsigned,
            ),
            MountedCarrier(
                "plivo",
                lambda request: Plivo(),
                self._is_plivo,
                None if settings.plivo_auth_token else "plivo_auth_token",
                {"answer": self._plivo_answer, "dial": _plivo_dial},
                unsigned,
            ),
            MountedCarrier(
                "vonage",
                lambda request: Vonage(),
                self._is_vonage,
                None if settings.vonage_signature_secret else "vonage_signature_secret",
                {"answer": self._vonage_answer, "event": _vonage_event},
                unsigned,
            ),
            MountedCarrier(
                "asterisk",
                lambda request: Asterisk(_query(request)),
                self._is_asterisk,
                None if settings.asterisk_secret else "asterisk_secret",
                {},
                unsigned,
            ),
        ]

    # ---- trust

    def _is_twilio(self, request: Request) -> bool:
        return signatures.twilio(
            request,
            token=secret(self._settings.twilio_auth_token),
            shared_key=secret(self._settings.twilio_shared_key),
            public_url=self._settings.public_url,
        )

    def _is_telnyx(self, request: Request) -> bool:
        token, key = secret(self._settings.telnyx_stream_token), self._settings.telnyx_public_key
        if token and signatures.shared_secret(request, secret=token):
            return True
        if not key:
            return False
        return signatures.telnyx(request, public_key=key, guard=self._guard, now=time.time())

    def _is_plivo(self, request: Request) -> bool:
        return signatures.plivo(
            request,
            token=secret(self._settings.plivo_auth_token),
            guard=self._guard,
            now=time.time(),
            public_url=self._settings.public_url,
        )

    def _is_vonage(self, request: Request) -> bool:
        key = secret(self._settings.vonage_signature_secret)
        return signatures.vonage(request, secret=key, guard=self._guard, now=time.time())

    def _is_asterisk(self, request: Request) -> bool:
        return signatures.shared_secret(request, secret=secret(self._settings.asterisk_secret))

    # ---- webhooks: `agent` in their address chooses who answers

    def _twilio_voice(self, request: Request, told: Mapping[str, str]) -> tuple[str, str]:
        given = {"agent": told.get("agent", ""), "caller": told.get("From", "")}
        return "text/xml", documents.twiml(self._stream_url(request, "twilio"), _present(given))

    def _telnyx_voice(self, request: Request, told: Mapping[str, str]) -> tuple[str, str]:
        """The stream's start tells the caller. The token by which the stream is known is passed on to it."""
        token = secret(self._settings.telnyx_stream_token)
        url = self._stream_url(request, "telnyx") + (f"?{urlencode({'token': token})}" if token else "")
        return "text/xml", documents.texml(url, _present({"agent": told.get("agent", "")}))

    def _plivo_answer(self, request: Request, told: Mapping[str, str]) -> tuple[str, str]:
        given = {"agent": told.get("agent", ""), "caller": told.get("From", "").lstrip("+")}
        return "text/xml", documents.plivo_xml(self._stream_url(request, "plivo"), _present(given))

    def _vonage_answer(self, request: Request, told: Mapping[str, str]) -> tuple[str, str]:
        given = {name: told.get(name, "") for name in ("agent", "uuid")} | {"caller": told.get("from", "")}
        document = documents.ncco(self._stream_url(request, "vonage"), _present(given))
        return "application/json", json.dumps(document)

    def _stream_url(self, request: Request, carrier: str) -> str:
        address = next(signatures.public_addresses(request, self._settings.public_url))
        parts = urlsplit(address)
        base = urlsplit(self._settings.public_url).path.rstrip("/")
        return f"wss://{parts.netloc}{base}/phone/{carrier}"


def _plivo_dial(request: Request, told: Mapping[str, str]) -> tuple[str, str]:
    return "text/xml", documents.dial_plivo_xml(told.get("to", ""))


def _vonage_event(request: Request, told: Mapping[str, str]) -> tuple[str, str]:
    """Vonage wants such an address; errors are told there and nowhere else."""
    log.info("vonage call %s: %s %s", told.get("uuid"), told.get("status"), told.get("reason", ""))
    return "application/json", "{}"


def _webhook(carrier: MountedCarrier, answer: Answer) -> PageHandler:
    """Only the carrier itself is answered."""

    async def webhook(request: Request) -> Response:
        if refusal := carrier.admit(request):
            return refusal
        try:
            posted = _posted(request)
        except BadMessage as bad:
            log.warning("%s: %s: %s", carrier.name, urlsplit(request.path).path, bad)
            return respond_text(str(bad), status=HTTPStatus.BAD_REQUEST)
        content_type, document = answer(request, _query(request) | posted)
        return respond(document, content_type)

    return webhook


def _query(request: Request) -> dict[str, str]:
    """The parameters of the address, without the secret that may be among them."""
    asked = signatures.pairs(urlsplit(request.path).query)
    return _present({name: value for name, value in asked if name != "token"})


def _posted(request: Request) -> dict[str, str]:
    """The parameters that were posted, as a form or as a JSON object. Raises BadMessage."""
    if not request.body:
        return {}
    if signatures.is_form(request):
        return dict(signatures.pairs(request.body))
    told = json_object(request.body.decode("utf-8", "replace"))
    return {name: value for name in told if (value := text(told, name))}


def _present(values: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}
