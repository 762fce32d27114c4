"""Who may call: the bearer token, and the origins that a browser's page may come from."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

from pipeline.addresses import is_loopback
from web.routes import Request

TOKEN_PROTOCOL = "openai-insecure-api-key."
"""A browser, which cannot set a socket's headers, offers its token, percent-encoded, as a subprotocol."""


def offered_tokens(request: Request) -> list[str]:
    """Every token a request offers: `Authorization: Bearer`, the subprotocol, `?token=`."""
    tokens = []
    for value in request.all("Authorization"):
        scheme, _, credentials = value.partition(" ")
        if scheme.lower() == "bearer":
            tokens.append(credentials.strip())
    for value in request.all("Sec-WebSocket-Protocol"):
        names = (name.strip() for name in value.split(","))
        tokens += [
            unquote(name.removeprefix(TOKEN_PROTOCOL)) for name in names if name.startswith(TOKEN_PROTOCOL)
        ]
    tokens += parse_qs(urlsplit(request.path).query).get("token", [])
    return tokens


@dataclass(frozen=True, slots=True)
class Gate:
    """Decides on one request.

    `token`: None lets in anyone who can reach the server. `open_to_all`: also from other machines.
    `origins`: pages from elsewhere that may call, as `https://host[:port]`. `address`: where others
    find us, if anywhere.
    """

    token: str | None = None
    open_to_all: bool = False
    origins: Sequence[str] = field(default_factory=tuple)
    address: str = ""

    def knows(self, request: Request) -> bool:
        """Whether the request carries the token, if one is set. Compared in constant time."""
        if self.token is None:
            return True
        expected = self.token.encode()
        return any(hmac.compare_digest(found.encode(), expected) for found in offered_tokens(request))

    def trusts_origin(self, request: Request) -> bool:
        """Whether the page that opens this socket may: our own page, an allowed one, or no browser at all.

        Without a token only a page loaded from a loopback name is our own: any name that is made to resolve
        to this machine (DNS rebinding) would otherwise pass as the same origin. `open_to_all` gives that up.
        """
        origins, hosts = request.all("Origin"), request.all("Host")
        if len(origins) > 1 or len(hosts) > 1:  # said twice is said by nobody we know
            return False
        origin = origins[0] if origins else None
        if origin is None or origin in self.origins or "*" in self.origins:
            return True
        try:
            page = urlsplit(origin)
        except ValueError:  # half an IPv6 address
            return False
        if page.scheme not in ("http", "https") or [page.netloc] != hosts:
            return False
        return self.token is not None or self.open_to_all or is_loopback(page.hostname or "")

    def trusts_host(self, request: Request) -> bool:
        """Whether what is read here may be read under the name that the request calls us by.

        A page of any name that is made to resolve to this machine reads what is served under its own (DNS
        rebinding), and a browser tells no origin then. So without a token only loopback names are answered,
        and the hosts of `origins` and `address`; `open_to_all` gives that up.
        """
        hosts = request.all("Host")
        if self.token is not None or self.open_to_all or "*" in self.origins or not hosts:
            return True
        if len(hosts) > 1:
            return False
        name = _host_name(f"//{hosts[0]}")
        known = map(_host_name, (*self.origins, self.address))
        return name is not None and (is_loopback(name) or name in known)


def _host_name(address: str) -> str | None:
    """In small letters, without its port; None where there is none."""
    try:
        return urlsplit(address).hostname
    except ValueError:  # half an IPv6 address
        return None
