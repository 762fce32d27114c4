"""Carriers' REST interfaces: what is asked, what is tried again, and what counts as done."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from pydantic import SecretStr

from fixtures.virtual_time import run
from tests.web.phone.served import phone_settings
from web.phone.accounts import api_of, hang_up_at
from web.phone.encodings import MULAW
from web.phone.mounting import Phones
from web.phone.rest import CarrierApi, CarrierRefused, PlivoApi, TelnyxApi, TwilioApi, rs256_jwt
from web.phone.wire import Started
from web.switchboard import Switchboard

Answer = httpx.Response | Exception


class Carrier:
    """Answers in turn; the last answer is repeated."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[httpx.Request] = []
        self.waits: list[float] = []

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.MockTransport(self._answer))

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def act(carrier: Carrier, api: Callable[[httpx.AsyncClient], CarrierApi], what: str, *arguments: str) -> None:
    async def run() -> None:
        async with carrier.client() as client:
            await getattr(api(client), what)(*arguments)

    asyncio.run(run())


def twilio(carrier: Carrier) -> Callable[[httpx.AsyncClient], CarrierApi]:
    return lambda client: TwilioApi(client, "AC1", "token", sleep=carrier.sleep)


def test_twilio_hangs_up() -> None:
    carrier = Carrier(httpx.Response(200, json={}))
    act(carrier, twilio(carrier), "hang_up", "CA1")
    asked = carrier.asked[0]
    assert (asked.method, str(asked.url)) == (
        "POST",
        "https://api.twilio.com/2010-04-01/Accounts/AC1/Calls/CA1.json",
    )
    assert asked.headers["Authorization"] == "Basic " + base64.b64encode(b"AC1:token").decode()
    assert parse_qs(asked.content.decode()) == {"Status": ["completed"]}


def test_twilio_transfers_with_a_new_document() -> None:
    carrier = Carrier(httpx.Response(200, json={}))
    act(carrier, twilio(carrier), "transfer", "CA1", "+1555<&")
    document = parse_qs(carrier.asked[0].content.decode())["Twiml"][0]
    assert "<Dial>+1555&lt;&amp;</Dial>" in document


def test_telnyx_names_its_commands_so_that_a_repeated_one_is_ignored() -> None:
    carrier = Carrier(httpx.ReadTimeout("slow"), httpx.Response(200, json={}))
    act(carrier, lambda client: TelnyxApi(client, "key", sleep=carrier.sleep), "transfer", "v3:a/b", "+1555")
    first, second = (json.loads(asked.content) for asked in carrier.asked)
    assert first == second
    assert (first["to"], len(first["command_id"])) == ("+1555", 36)
    assert str(carrier.asked[0].url) == "https://api.telnyx.com/v2/calls/v3%3Aa%2Fb/actions/transfer"
    assert carrier.asked[0].headers["Authorization"] == "Bearer key"


def test_plivo() -> None:
    carrier = Carrier(httpx.Response(204))

    def api(client: httpx.AsyncClient) -> PlivoApi:
        return PlivoApi(client, "MA1", "token", "https://voice.example.com/", sleep=carrier.sleep)

    act(carrier, api, "hang_up", "c1")
    act(carrier, api, "transfer", "c1", "+1555")
    hung_up, transferred = carrier.asked
    assert (hung_up.method, str(hung_up.url)) == ("DELETE", "https://api.plivo.com/v1/Account/MA1/Call/c1/")
    assert json.loads(transferred.content) == {
        "legs": "aleg",
        "aleg_url": "https://voice.example.com/phone/plivo/dial?to=%2B1555",
        "aleg_method": "GET",
    }


def test_plivo_cannot_transfer_without_a_public_address() -> None:
    carrier = Carrier(httpx.Response(204))
    with pytest.raises(CarrierRefused, match="public_url"):
        act(carrier, lambda client: PlivoApi(client, "MA1", "token", ""), "transfer", "c1", "+1555")


def test_vonage_is_asked_with_a_token_signed_by_the_application(tmp_path: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    file = tmp_path / "private.key"
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(b"\xef\xbb\xbf" + pem.replace(b"\n", b"\r\n"))  # as some editors save it
    settings = phone_settings(vonage_application_id="app", vonage_private_key=file)
    carrier = Carrier(httpx.Response(204))

    def api(client: httpx.AsyncClient) -> CarrierApi:
        found = api_of("vonage", settings, client)
        assert found is not None
        return found

    act(carrier, api, "hang_up", "u1")
    act(carrier, api, "transfer", "u1", "+1555")
    hung_up, transferred = carrier.asked
    assert (hung_up.method, str(hung_up.url)) == ("PUT", "https://api.nexmo.com/v1/calls/u1")
    assert json.loads(hung_up.content) == {"action": "hangup"}
    assert json.loads(transferred.content)["destination"]["ncco"][0]["endpoint"][0]["number"] == "1555"
    signed, _, signature = hung_up.headers["Authorization"].removeprefix("Bearer ").rpartition(".")
    raw = base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4))
    key.public_key().verify(raw, signed.encode(), PKCS1v15(), SHA256())
    with pytest.raises(ValueError, match=r"."):
        rs256_jwt({}, "no key")


@pytest.mark.parametrize(
    ("api", "gone"),
    [
        (lambda client: TwilioApi(client, "AC1", "t"), httpx.Response(404, json={"code": 20404})),
        (lambda client: TelnyxApi(client, "k"), httpx.Response(422, json={"errors": [{"code": "90018"}]})),
        (lambda client: PlivoApi(client, "MA1", "t", ""), httpx.Response(404, text="not found")),
    ],
)
def test_a_call_that_is_over_counts_as_hung_up(
    api: Callable[[httpx.AsyncClient], CarrierApi], gone: httpx.Response
) -> None:
    carrier = Carrier(gone)
    act(carrier, api, "hang_up", "c1")
    act(carrier, api, "hang_up", "c1")
    assert len(carrier.asked) == 2


def test_what_may_pass_is_tried_again_with_growing_waits() -> None:
    carrier = Carrier(
        httpx.ConnectError("no route"), httpx.Response(503), httpx.Response(429), httpx.Response(200)
    )
    act(carrier, twilio(carrier), "hang_up", "CA1")
    assert len(carrier.asked) == 4
    assert carrier.waits == pytest.approx([0.3, 0.9, 2.7])


def test_it_is_not_tried_for_ever() -> None:
    carrier = Carrier(httpx.Response(500, text="oops"))
    with pytest.raises(CarrierRefused, match="500: oops"):
        act(carrier, twilio(carrier), "hang_up", "CA1")
    assert len(carrier.asked) == 4


def test_a_refusal_is_final() -> None:
    carrier = Carrier(httpx.Response(401, text="who are you?"))
    with pytest.raises(CarrierRefused, match="who are you"):
        act(carrier, twilio(carrier), "hang_up", "CA1")
    assert len(carrier.asked) == 1


@pytest.mark.parametrize("carrier", ["twilio", "telnyx", "plivo", "vonage", "asterisk", "nobody"])
def test_without_credentials_there_is_no_interface(carrier: str) -> None:
    async def ask() -> CarrierApi | None:
        async with Carrier(httpx.Response(200)).client() as client:
            return api_of(carrier, phone_settings(), client, account="AC1")

    assert asyncio.run(ask()) is None


def test_the_bridges_hang_up_never_raises(caplog: pytest.LogCaptureFixture) -> None:
    carrier = Carrier(httpx.Response(401, text="no"))
    settings = phone_settings(twilio_auth_token=SecretStr("token"))

    async def hang_up() -> None:
        async with carrier.client() as client:
            started = Started("MZ1", "CA1", MULAW, MULAW, account="AC1")
            await hang_up_at("twilio", settings, client)(started)

    asyncio.run(hang_up())
    assert "CA1 was not hung up" in caplog.text


@pytest.mark.parametrize(
    ("problem", "asked"),
    [
        (httpx.InvalidURL("URL too long"), 1),
        (httpx.TooManyRedirects("there and back"), 1),
        (RuntimeError("the client has been closed"), 1),
        (httpx.DecodingError("no gzip"), 4),
    ],
)
def test_whatever_keeps_a_request_from_an_answer_is_told(problem: Exception, asked: int) -> None:
    carrier = Carrier(problem)
    with pytest.raises(CarrierRefused, match=str(problem)):
        act(carrier, twilio(carrier), "hang_up", "CA1")
    assert len(carrier.asked) == asked


def stop_while_hanging_up(carrier: Carrier, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service is stopped, with a grace of 2 s, while a carrier is asked to end a call."""
    client, settings = carrier.client(), phone_settings(twilio_auth_token=SecretStr("token"))
    monkeypatch.setattr(httpx, "AsyncClient", lambda: client)

    async def stop() -> None:
        phones = Phones(Switchboard(), settings)
        started = Started("MZ1", "CA1", MULAW, MULAW, account="AC1")
        hanging_up = asyncio.ensure_future(phones.hang_up_at("twilio")(started))
        await asyncio.sleep(0)
        await phones.stop(2.0)
        await hanging_up

    run(stop())
    assert client.is_closed


def test_a_stop_waits_for_a_hang_up_that_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    carrier = Carrier(httpx.Response(503), httpx.Response(503), httpx.Response(200))
    stop_while_hanging_up(carrier, monkeypatch)
    assert len(carrier.asked) == 3
    assert "not hung up" not in caplog.text


def test_a_stop_does_not_wait_for_ever_for_a_carrier(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    carrier = Carrier(httpx.Response(503))
    stop_while_hanging_up(carrier, monkeypatch)
    assert len(carrier.asked) == 3
    assert "twilio call CA1 was not hung up: the service was stopped before" in caplog.text
