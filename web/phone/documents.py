"""What a carrier is told to do with a call: TwiML, TeXML, Plivo XML, NCCO, and Asterisk's configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit
from xml.sax.saxutils import escape, quoteattr

_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


def twiml(url: str, parameters: Mapping[str, str]) -> str:
    """Connect a Twilio call to the stream at `url` (wss). Twilio takes no query string there: values are
    Parameters."""
    return _connect_stream(f"url={quoteattr(url)}", parameters)


def texml(url: str, parameters: Mapping[str, str]) -> str:
    """The same at Telnyx: both ways in mu-law, as RTP payloads."""
    attributes = 'bidirectionalMode="rtp" bidirectionalCodec="PCMU" codec="PCMU"'
    return _connect_stream(f"url={quoteattr(url)} {attributes}", parameters)


def _connect_stream(attributes: str, parameters: Mapping[str, str]) -> str:
    inside = "".join(
        f"\n      <Parameter name={quoteattr(name)} value={quoteattr(value)}/>"
        for name, value in parameters.items()
    )
    stream = f"<Stream {attributes}>{inside}\n    </Stream>" if inside else f"<Stream {attributes}/>"
    return f"{_XML}<Response>\n  <Connect>\n    {stream}\n  </Connect>\n</Response>\n"


def dial_twiml(to: str) -> str:
    """Put a Twilio call through to a number."""
    return f"{_XML}<Response>\n  <Dial>{escape(to)}</Dial>\n</Response>\n"


def plivo_xml(url: str, parameters: Mapping[str, str]) -> str:
    """Stream a Plivo call both ways in mu-law; it goes on with what follows once the socket is closed."""
    headers = ";".join(f"{name}={value}" for name, value in parameters.items())
    extra = f" extraHeaders={quoteattr(headers)}" if headers else ""
    return (
        f'{_XML}<Response>\n  <Stream bidirectional="true" keepCallAlive="true"'
        f' contentType="audio/x-mulaw;rate=8000"{extra}>{escape(url)}</Stream>\n</Response>\n'
    )


def dial_plivo_xml(to: str) -> str:
    """Put a Plivo call through to a number."""
    return f"{_XML}<Response>\n  <Dial><Number>{escape(to)}</Number></Dial>\n</Response>\n"


def ncco(url: str, parameters: Mapping[str, str]) -> list[dict[str, Any]]:
    """Connect a Vonage call to the socket at `url`, which Vonage opens with a signed JWT."""
    endpoint = {
        "type": "websocket",
        "uri": url,
        "content-type": "audio/l16;rate=16000",
        "headers": dict(parameters),
        "authorization": {"type": "vonage"},
    }
    return [_connected(endpoint)]


def dial_ncco(to: str) -> list[dict[str, Any]]:
    """Put a Vonage call through to a number."""
    return [_connected({"type": "phone", "number": to.lstrip("+")})]


def _connected(endpoint: dict[str, Any]) -> dict[str, Any]:
    """Vonage wants a calling number for every leg: any of the account's will do."""
    return {"action": "connect", "randomFromNumber": True, "endpoint": [endpoint]}


def telnyx_command(url: str, parameters: Mapping[str, str]) -> str:
    """The body of Telnyx's `answer` and `streaming_start` commands, for those who answer its webhooks."""
    body: dict[str, Any] = {
        "stream_url": url,
        "stream_track": "inbound_track",
        "stream_codec": "PCMU",
        "stream_bidirectional_mode": "rtp",
        "stream_bidirectional_codec": "PCMU",
    }
    if parameters:
        body["custom_parameters"] = [{"name": name, "value": value} for name, value in parameters.items()]
    return json.dumps(body, indent=2)


def asterisk_configuration(url: str, parameters: Mapping[str, str]) -> str:
    """`websocket_client.conf` and a dial plan for chan_websocket."""
    values = {"caller": "${URIENCODE(${CALLERID(num)})}"}
    values |= {name: quote(value, safe="") for name, value in parameters.items()}
    options = ",".join(f"{name}={value}" for name, value in values.items())
    tls = "tls_enabled = yes\n" if urlsplit(url).scheme == "wss" else ""
    return (
        "; websocket_client.conf\n[rejoinder]\ntype = websocket_client\nconnection_type = per_call_config\n"
        f"uri = {url}\nusername = asterisk\npassword = ASTERISK_SECRET\n{tls}"
        "\n; extensions.conf\n"
        "; f(json) is for Asterisk 20.18, 22.8, 23.2 and newer. Leave it out for older ones, from 20.16,\n"
        "; 21.11, 22.6 and 23.0 on: control is in plain text then.\n[default]\n"
        f"exten = _X.,1,Dial(WebSocket/rejoinder/c(ulaw)f(json)v({options}))\n"
        " same = n,Hangup()\n"
    )
