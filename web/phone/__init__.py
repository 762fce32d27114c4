"""The phone bridge: carriers' media sockets into calls."""

from web.phone.mounting import mount

__all__ = ["mount"]
