"""Who may call: tokens in every place a client can put them, and the origins of pages."""

from __future__ import annotations

import pytest
from multidict import CIMultiDict

from web.auth import Gate
from web.routes import Request

TOKEN = "sesame-sesame-0123"


def asking(path: str = "/v1/realtime", **headers: str) -> Request:
    return Request(path, CIMultiDict({name.replace("_", "-"): value for name, value in headers.items()}))


@pytest.mark.parametrize(
    "request_",
    [
        asking(Authorization=f"Bearer {TOKEN}"),
        asking(Authorization=f"bearer  {TOKEN} "),
        asking(f"/v1/realtime?agent=support&token={TOKEN}"),
        asking(Sec_WebSocket_Protocol=f"realtime, openai-insecure-api-key.{TOKEN}"),
    ],
)
def test_a_token_is_found_wherever_a_client_can_put_it(request_: Request) -> None:
    assert Gate(TOKEN).knows(request_)


@pytest.mark.parametrize(
    "request_",
    [
        asking(),
        asking(Authorization=f"Bearer {TOKEN}x"),
        asking(Authorization="Bearer "),
        asking(Authorization=f"Basic {TOKEN}"),
        asking(Authorization="Bearer sésame"),
        asking("/v1/realtime?token=%ff%00"),
        asking(Sec_WebSocket_Protocol="openai-insecure-api-key."),
    ],
)
def test_anything_else_is_not_the_token(request_: Request) -> None:
    assert not Gate(TOKEN).knows(request_)


def test_a_browser_can_offer_a_token_of_any_characters() -> None:
    offer = asking(Sec_WebSocket_Protocol="realtime, openai-insecure-api-key.a%20b%2Fc%28%C3%A9")
    assert Gate("a b/c(é").knows(offer)


def test_without_a_token_nobody_needs_one() -> None:
    assert Gate().knows(asking())


@pytest.mark.parametrize(
    ("gate", "origin", "host", "trusted"),
    [
        (Gate(), None, "127.0.0.1:8765", True),
        (Gate(), "http://127.0.0.1:8765", "127.0.0.1:8765", True),
        (Gate(), "http://localhost:8765", "localhost:8765", True),
        (Gate(), "http://[::1]:8765", "[::1]:8765", True),
        (Gate(), "http://evil.example", "127.0.0.1:8765", False),
        (Gate(), "http://localhost:9999", "localhost:8765", False),
        (Gate(), "null", "localhost:8765", False),
        # DNS rebinding: the page's own name resolves to this machine
        (Gate(), "http://evil.example:8765", "evil.example:8765", False),
        (Gate(TOKEN), "https://agent.example", "agent.example", True),
        (Gate(open_to_all=True), "http://box.local:8765", "box.local:8765", True),
        (Gate(TOKEN), "https://other.example", "agent.example", False),
        (Gate(TOKEN, origins=("https://other.example",)), "https://other.example", "agent.example", True),
        (Gate(TOKEN, origins=("*",)), "https://any.example", "agent.example", True),
    ],
)
def test_only_our_own_page_or_an_allowed_one_may_open_a_socket(
    gate: Gate, origin: str | None, host: str, trusted: bool
) -> None:
    headers = {"Host": host} | ({} if origin is None else {"Origin": origin})
    assert gate.trusts_origin(asking(**headers)) is trusted


@pytest.mark.parametrize(
    ("gate", "hosts", "trusted"),
    [
        (Gate(), ["127.0.0.1:8765"], True),
        (Gate(), ["LocalHost:8765"], True),
        (Gate(), ["[::1]"], True),
        (Gate(), ["localhost.:8765"], True),
        (Gate(), ["[::ffff:7f00:1]:8765"], True),
        (Gate(), ["[::ffff:c0a8:105]:8765"], False),
        (Gate(), ["*"], False),
        (Gate(), [], True),  # no browser
        (Gate(), ["evil.example:8765"], False),
        (Gate(), ["127.0.0.1.evil.example"], False),
        (Gate(), ["localhost", "evil.example"], False),
        (Gate(), [""], False),
        (Gate(), ["[::1"], False),
        (Gate(address="https://voice.example.com/behind"), ["voice.example.com"], True),
        (Gate(address="https://voice.example.com"), ["evil.example"], False),
        (Gate(origins=("https://agent.example",)), ["agent.example:8443"], True),
        (Gate(origins=("*",)), ["any.example"], True),
        (Gate(TOKEN), ["agent.example"], True),
        (Gate(open_to_all=True), ["box.local:8765"], True),
    ],
)
def test_without_a_token_only_our_own_names_are_answered(gate: Gate, hosts: list[str], trusted: bool) -> None:
    headers: CIMultiDict[str] = CIMultiDict()
    for host in hosts:
        headers.add("Host", host)
    assert gate.trusts_host(Request("/metrics", headers)) is trusted
