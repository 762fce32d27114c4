"""`rejoinder phone`: what to paste at a carrier so that its calls come here, and hands on a running call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Literal
from urllib.parse import urlsplit

import httpx
import typer

from pipeline.config import ConfigError, Settings, load
from web.output import clear_errors, errors, print_xml
from web.phone import documents
from web.phone.accounts import api_of
from web.phone.rest import CarrierApi, CarrierRefused
from web.phone.signatures import MissingPackage

app = typer.Typer(no_args_is_help=True, help="What to paste at a carrier, and hands on a running call.")

Url = Annotated[str, typer.Option(help="The service's public address, as wss://host/path.")]
Agent = Annotated[str, typer.Option(help="The agent who answers; else the service's own.")]
Carrier = Annotated[Literal["twilio", "telnyx", "plivo", "vonage"], typer.Option(help="Whose call it is.")]
Account = Annotated[str, typer.Option(help="Twilio: the account SID.")]
CallId = Annotated[str, typer.Argument(metavar="CALL", help="The carrier's id of the call, from the log.")]
Number = Annotated[str, typer.Argument(metavar="NUMBER", help="Where to, as +15550100123.")]

_CREDENTIALS = {
    "twilio": "the setting twilio_auth_token, and --account",
    "telnyx": "the setting telnyx_api_key",
    "plivo": "the settings plivo_auth_id and plivo_auth_token",
    "vonage": "the settings vonage_application_id and vonage_private_key",
}


@app.command()
def twiml(url: Url, agent: Agent = "") -> None:
    """TwiML for a TwiML Bin at Twilio, which fills in the caller's number."""
    print_xml(documents.twiml(_stream(url, "twilio"), _given(agent, caller="{{From}}")))


@app.command()
def telnyx(url: Url, agent: Agent = "") -> None:
    """TeXML for a TeXML Bin at Telnyx, and the body of its streaming commands."""
    stream = _stream(url, "telnyx")
    print_xml(documents.texml(stream, _given(agent)) + "\n")
    errors.print("Or, if you answer Telnyx's webhooks yourself, for `answer` or `streaming_start`:")
    typer.echo(documents.telnyx_command(stream, _given(agent)))


@app.command()
def plivo(url: Url, agent: Agent = "") -> None:
    """XML for the answer URL of a Plivo application."""
    print_xml(documents.plivo_xml(_stream(url, "plivo"), _given(agent)))


@app.command()
def ncco(url: Url, agent: Agent = "") -> None:
    """The NCCO for the answer URL of a Vonage application."""
    typer.echo(json.dumps(documents.ncco(_stream(url, "vonage"), _given(agent)), indent=2))


@app.command()
def asterisk(url: Url, agent: Agent = "") -> None:
    """Asterisk's websocket_client.conf and a dial plan for it."""
    typer.echo(documents.asterisk_configuration(_stream(url, "asterisk"), _given(agent)), nl=False)


@app.command("hang-up")
def hang_up(call: CallId, carrier: Carrier, account: Account = "") -> None:
    """End a telephone call."""
    _do(carrier, account, lambda api: api.hang_up(call))


@app.command()
def transfer(call: CallId, to: Number, carrier: Carrier, account: Account = "") -> None:
    """Put a caller through to a number; the agent's part of the call is over."""
    _do(carrier, account, lambda api: api.transfer(call, to))


def _stream(url: str, carrier: str) -> str:
    """The carrier's socket under the public address."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("wss", "ws") and parts.hostname and parts.port != 0 and not parts.query
    except ValueError:  # half an IPv6 address, or a port that is no number
        usable = False
    if not usable:
        raise typer.BadParameter("give the public address as wss://host[/path]", param_hint="--url")
    path = parts.path.rstrip("/")
    if not path.endswith(f"/phone/{carrier}"):
        path += f"/phone/{carrier}"
    return f"{parts.scheme}://{parts.netloc}{path}"


def _given(agent: str, **more: str) -> dict[str, str]:
    return {"agent": agent, **more} if agent else more


def _do(carrier: str, account: str, act: Callable[[CarrierApi], Awaitable[None]]) -> None:
    with clear_errors(ConfigError, CarrierRefused, MissingPackage, OSError, ValueError):
        asyncio.run(_act(load(), carrier, account, act))


async def _act(
    settings: Settings, carrier: str, account: str, act: Callable[[CarrierApi], Awaitable[None]]
) -> None:
    async with httpx.AsyncClient() as client:
        api = api_of(carrier, settings, client, account=account)
        if api is None:
            raise ValueError(f"{carrier} needs {_CREDENTIALS[carrier]}")
        await act(api)
