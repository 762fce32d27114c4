"""Hosts as people write them: whether they are this machine alone, and how sockets and URLs spell them."""

from __future__ import annotations

import ipaddress
import socket

_EVERYWHERE = ("", "*")
_NEVER_IN_NAMES = "/:[]@?#%\\,"


def plain_host(host: str) -> str:
    """A host to listen on as the socket library takes it.

    Without the brackets of a URL, an IPv4 address in IPv6's clothes as what it is, `*` as the empty host,
    which is every address. Names and other spellings stay as they are.
    """
    host = host.strip()
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if host in _EVERYWHERE:
        return ""
    address = _address(host)
    return str(address) if isinstance(address, ipaddress.IPv4Address) else host


def is_host(host: str) -> bool:
    """Whether this can be a host at all: an address, every address, or what has a name's form.

    What people paste instead has colons, slashes, half of a bracket or spaces.
    """
    host = plain_host(host)
    if host == "" or _address(host) is not None:
        return True
    return all(host.removesuffix(".").split(".")) and not any(
        mark in _NEVER_IN_NAMES or mark.isspace() or not mark.isprintable() for mark in host
    )


def is_loopback(host: str) -> bool:
    """Whether a host's own spelling says that it can only be this machine; nobody is asked about names.

    Addresses in any spelling, and `localhost` and the names under it, in any case and with a closing dot,
    which browsers and resolvers keep for this machine (RFC 6761).
    """
    host = plain_host(host)
    address = _address(host)
    if address is not None:
        return address.is_loopback
    name = host.lower().removesuffix(".")
    return name == "localhost" or name.endswith(".localhost")


def listens_here_only(host: str) -> bool:
    """Whether a server that binds to this host can be reached from this machine only.

    What is no address is resolved, as binding to it does: all that it stands for must be loopback addresses.
    """
    host = plain_host(host)
    if host == "":
        return False
    if _address(host) is not None or is_loopback(host):
        return is_loopback(host)
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # a name that nobody knows, or that is none
        return False
    return all(is_loopback(str(address[0])) for *_, address in found)


def in_url(host: str, port: int) -> str:
    """`host:port` as it stands in a URL that a program on this machine opens; every address is localhost."""
    host = plain_host(host)
    address = _address(host)
    if host == "" or (address is not None and address.is_unspecified):
        host = "localhost"
    elif isinstance(address, ipaddress.IPv6Address):
        host = f"[{str(address).replace('%', '%25')}]"
    return f"{host}:{port}"


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """None for a name. An IPv4 address that is written as an IPv6 one is that IPv4 address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
