"""`rejoinder phone`: what it prints is what the carrier and the bridge understand."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from web.commands.phone import app

URL = "wss://voice.example.com"


def printed(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_twiml() -> None:
    document = ElementTree.fromstring(printed("twiml", "--url", URL, "--agent", "dentist").encode())
    stream = document.find("Connect/Stream")
    assert stream is not None
    assert stream.get("url") == "wss://voice.example.com/phone/twilio"
    values = {one.get("name"): one.get("value") for one in stream.findall("Parameter")}
    assert values == {"agent": "dentist", "caller": "{{From}}"}


def test_texml_and_telnyx_commands() -> None:
    out = printed("telnyx", "--url", URL + "/")
    document, _, command = out.partition("</Response>")
    stream = ElementTree.fromstring((document + "</Response>").encode()).find("Connect/Stream")
    assert stream is not None
    assert stream.attrib == {
        "url": "wss://voice.example.com/phone/telnyx",
        "bidirectionalMode": "rtp",
        "bidirectionalCodec": "PCMU",
        "codec": "PCMU",
    }
    assert json.loads(command)["stream_url"] == "wss://voice.example.com/phone/telnyx"


def test_plivo() -> None:
    stream = ElementTree.fromstring(printed("plivo", "--url", URL).encode()).find("Stream")
    assert stream is not None
    assert stream.text == "wss://voice.example.com/phone/plivo"
    assert stream.get("bidirectional") == "true"


def test_ncco() -> None:
    ncco = json.loads(printed("ncco", "--url", URL + "/behind/proxy"))
    endpoint = ncco[0]["endpoint"][0]
    assert endpoint["uri"] == "wss://voice.example.com/behind/proxy/phone/vonage"
    assert endpoint["content-type"] == "audio/l16;rate=16000"


def test_asterisk() -> None:
    out = printed("asterisk", "--url", URL + "/phone/asterisk", "--agent", "front desk")
    assert "uri = wss://voice.example.com/phone/asterisk\n" in out
    assert "c(ulaw)f(json)v(caller=${URIENCODE(${CALLERID(num)})},agent=front%20desk)" in out
    explained = " ".join(line.removeprefix("; ") for line in out.splitlines() if line.startswith("; "))
    assert "f(json) is for Asterisk 20.18, 22.8, 23.2 and newer" in explained
    assert all(len(line) <= 120 for line in out.splitlines() if line.startswith(";"))


@pytest.mark.parametrize(
    "url",
    [
        "https://voice.example.com",
        "wss://",
        "voice.example.com",
        "wss://a?b=1",
        "wss://[a",
        "wss://a:b",
        "wss://:1",
    ],
)
def test_another_address_is_refused(url: str) -> None:
    result = CliRunner().invoke(app, ["twiml", "--url", url])
    assert result.exit_code == 2
    assert "wss://host" in result.output


@pytest.mark.parametrize(
    ("carrier", "needs"),
    [
        ("twilio", "twilio_auth_token, and --account"),
        ("telnyx", "telnyx_api_key"),
        ("plivo", "plivo_auth_id and plivo_auth_token"),
        ("vonage", "vonage_application_id and vonage_private_key"),
    ],
)
def test_missing_credentials_are_named(
    carrier: str, needs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["hang-up", "CA1", "--carrier", carrier])
    assert result.exit_code == 1
    assert needs in " ".join(result.output.split())


def test_a_carrier_that_there_is_not_is_told_from_one_without_credentials() -> None:
    result = CliRunner().invoke(app, ["hang-up", "CA1", "--carrier", "twillio"])
    assert result.exit_code == 2
    assert "telnyx" in result.output
