"""Hosts in every spelling: which are this machine alone, and how a URL has them."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from pipeline.addresses import in_url, is_host, is_loopback, listens_here_only, plain_host
from pipeline.config import ConfigError, load

HERE = [
    "127.0.0.1",
    "127.0.0.2",
    "127.255.255.254",
    "::1",
    "[::1]",
    " [::1] ",
    "0:0:0:0:0:0:0:1",
    "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "::1%lo",
    "::ffff:127.0.0.1",
    "[::ffff:127.0.0.1]",
    "::ffff:7f00:1",
    "::FFFF:127.1.2.3",
    "localhost",
    "LOCALHOST",
    "LocalHost.",
    "voice.localhost",
]
ELSEWHERE = [
    "",
    "*",
    "0.0.0.0",
    "::",
    "[::]",
    "0:0:0:0:0:0:0:0",
    "::ffff:0.0.0.0",
    "::ffff:192.168.1.5",
    "192.168.1.5",
    "128.0.0.1",
    "fe80::1",
    "[fe80::1%eth0]",
    "::2",
]
NAMES_OF_OTHERS = ["localhost.example.com", "notlocalhost", "127.0.0.1.example.com", "..", "a" * 70]


@pytest.mark.parametrize("host", HERE)
def test_this_machine_alone(host: str) -> None:
    assert is_loopback(host)
    assert listens_here_only(host)
    assert load({"host": host, "phone_unsigned": True}).auth_token is None


@pytest.mark.parametrize("host", ELSEWHERE)
def test_reachable_from_other_machines(host: str) -> None:
    assert not is_loopback(host)
    assert not listens_here_only(host)
    with pytest.raises(ConfigError, match="can be reached from other machines: set auth_token"):
        load({"host": host})
    with pytest.raises(ConfigError, match="phone_unsigned lets anyone call"):
        load({"host": host, "auth_token": "secret", "phone_unsigned": True})


@pytest.mark.parametrize("host", NAMES_OF_OTHERS)
def test_a_name_is_never_taken_for_this_machine_by_its_looks(host: str) -> None:
    assert not is_loopback(host)


def resolver(**known: list[str]) -> Any:
    """In the place of the system's: names by their addresses."""

    def getaddrinfo(host: str, *arguments: Any, **named: Any) -> list[Any]:
        if host not in known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in known[host]]

    return getaddrinfo


def test_a_name_that_is_listened_on_is_what_it_resolves_to(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"debian": ["127.0.1.1"], "both": ["::1", "127.0.0.1"], "mixed": ["127.0.0.1", "10.0.0.7"]}
    monkeypatch.setattr(socket, "getaddrinfo", resolver(**known))
    assert listens_here_only("debian")
    assert listens_here_only("both")
    assert not listens_here_only("mixed")
    assert not listens_here_only("unknown")
    assert not is_loopback("debian"), "a page's name is never looked up: whoever owns it answers"


@pytest.mark.parametrize("host", ["127.1", "0x7f.1", "2130706433"])
def test_what_the_system_reads_as_a_loopback_address_is_one(host: str) -> None:
    assert listens_here_only(host)


@pytest.mark.parametrize("host", ["0", "0x0", "10.1"])
def test_what_the_system_reads_as_another_address_is_none(host: str) -> None:
    assert not listens_here_only(host)


@pytest.mark.parametrize("host", [*NAMES_OF_OTHERS[-2:], "a b", "ü" * 64])
def test_what_is_no_name_is_not_this_machine(host: str) -> None:
    assert not listens_here_only(host)


@pytest.mark.parametrize(
    "host",
    ["", "*", "0.0.0.0", "[::1]", "::1%lo", "127.1", "2130706433", "localhost.", "my_host", "ü.example"],
)
def test_what_may_be_a_host(host: str) -> None:
    assert is_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "[::1",
        "::1]",
        "127.0.0.1:80",
        "http://127.0.0.1",
        "host/",
        "a b",
        "..",
        ".local",
        "a,b",
        "me@host",
        "\0",
    ],
)
def test_what_is_no_host(host: str) -> None:
    assert not is_host(host)


@pytest.mark.parametrize(
    ("host", "plain", "url"),
    [
        ("127.0.0.1", "127.0.0.1", "127.0.0.1:80"),
        ("[::1]", "::1", "[::1]:80"),
        ("0:0:0:0:0:0:0:1", "0:0:0:0:0:0:0:1", "[::1]:80"),
        ("::ffff:127.0.0.1", "127.0.0.1", "127.0.0.1:80"),
        ("fe80::1%eth0", "fe80::1%eth0", "[fe80::1%25eth0]:80"),
        ("LOCALHOST.", "LOCALHOST.", "LOCALHOST.:80"),
        ("0.0.0.0", "0.0.0.0", "localhost:80"),
        ("[::]", "::", "localhost:80"),
        ("*", "", "localhost:80"),
        ("", "", "localhost:80"),
    ],
)
def test_spelled_for_the_socket_library_and_for_a_url(host: str, plain: str, url: str) -> None:
    assert plain_host(host) == plain
    assert in_url(host, 80) == url
