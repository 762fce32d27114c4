"""Whether a request comes from the carrier whose number points here: decided before the socket opens.

Pure functions of the request and a secret. Everything secret is compared in constant time.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import math
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from web.auth import offered_tokens
from web.routes import Request

REPLAY_WINDOW_SECONDS = 300.0
_REMEMBERED = 20_000


class ReplayGuard:
    """Remembers what may be used once, for as long as its timestamp would be accepted. Bounded."""

    def __init__(self, window_seconds: float = REPLAY_WINDOW_SECONDS) -> None:
        self._window = window_seconds
        self._seen: dict[str, float] = {}

    def first_time(self, token: str, now: float) -> bool:
        """Whether this has not been seen within the window; it counts as seen from now on."""
        while self._seen and (len(self._seen) >= _REMEMBERED or next(iter(self._seen.values())) < now):
            del self._seen[next(iter(self._seen))]
        if self._seen.get(token, -math.inf) >= now:
            return False
        self._seen[token] = now + 2 * self._window
        return True


def public_addresses(request: Request, public_url: str = "") -> Iterator[str]:
    """How the carrier may have written the address that it opened.

    Behind a proxy only `public_url` (or the proxy's X-Forwarded-Host) tells the host. Carriers and proxies
    differ in scheme, in the default port and in a trailing slash, so each way is given. None of them is
    trusted: an address counts only with a signature over it.
    """
    asked = urlsplit(request.path)
    base = urlsplit(public_url)
    forwarded = _header(request, "X-Forwarded-Host").partition(",")[0].strip()  # the outermost proxy's
    host = base.netloc or forwarded or _header(request, "Host")
    path = base.path.rstrip("/") + asked.path
    bare = path.rstrip("/")
    name, colon, port = host.rpartition(":")
    names = [host]
    if colon and port in ("443", "80"):
        names.append(name)
    for scheme in ("wss", "https", "ws", "http"):
        default = "443" if scheme in ("wss", "https") else "80"
        for netloc in names if colon and port.isdecimal() else [host, f"{host}:{default}"]:
            for written in dict.fromkeys((path, bare, bare + "/")):
                yield urlunsplit((scheme, netloc, written, asked.query, ""))


def twilio(request: Request, *, token: str, shared_key: str = "", public_url: str = "") -> bool:
    """X-Twilio-Signature: base64 of an HMAC, keyed with the auth token, of the address and what was posted.

    A posted form adds each name and value in the order of the names; any other body is signed by its SHA-256
    as the address's parameter bodySHA256. SHA-1, or SHA-256 where X-Twilio-Webhooks-Signature-Settings says
    so; then the key is the account's shared key. It has no timestamp, so a replay cannot be told.
    """
    given = _header(request, "X-Twilio-Signature")
    algorithm = _twilio_algorithm(_header(request, "X-Twilio-Webhooks-Signature-Settings"))
    if not given or algorithm is None:
        return False
    posted = ""
    if is_form(request):
        posted = "".join(name + value for name, value in sorted(set(pairs(request.body))))
    elif request.body and not _any_equal(_sha256(request.body), _asked(request, "bodySHA256")):
        return False
    key = shared_key or token if algorithm == "sha256" else token
    addresses = public_addresses(request, public_url)
    return _any_equal(given, [_base64_hmac(key, address + posted, algorithm) for address in addresses])


def is_form(request: Request) -> bool:
    """Whether what was posted is a form."""
    kind = _header(request, "Content-Type").partition(";")[0]
    return kind.strip().lower() == "application/x-www-form-urlencoded"


def pairs(encoded: bytes | str) -> list[tuple[str, str]]:
    """The names and values of a form or of an address's query."""
    text = encoded if isinstance(encoded, str) else encoded.decode("utf-8", "replace")
    return parse_qsl(text, keep_blank_values=True)


def _asked(request: Request, name: str) -> list[str]:
    return [value for found, value in pairs(urlsplit(request.path).query) if found == name]


def _twilio_algorithm(settings: str) -> str | None:
    """hashlib's name of the algorithm; None for one that is unknown."""
    for setting in settings.split(","):
        name, _, value = setting.partition("=")
        if name.strip() == "algorithm" and value.strip():
            return {"HMAC_SHA1": "sha1", "HMAC_SHA256": "sha256"}.get(value.strip().upper())
    return "sha1"


def plivo(request: Request, *, token: str, guard: ReplayGuard, now: float, public_url: str = "") -> bool:
    """X-Plivo-Signature-V3: base64 of HMAC-SHA256 of `address.nonce`, or of `address?.form.nonce`.

    The key is the auth token. The address's parameters stand in the order of their names, and so do a posted
    form's names and values, which follow without separators. A nonce is accepted once.
    """
    nonce = _header(request, "X-Plivo-Signature-V3-Nonce")
    given = _header(request, "X-Plivo-Signature-V3")
    if not nonce or not given:
        return False
    form = sorted(pairs(request.body)) if is_form(request) else []
    if request.body and not form:
        return False
    expected = [
        _base64_hmac(token, f"{_plivo_signed(address, form)}.{nonce}", "sha256")
        for address in public_addresses(request, public_url)
    ]
    genuine = [_any_equal(one.strip(), expected) for one in given.split(",")]
    return any(genuine) and guard.first_time(nonce, now)


def _plivo_signed(address: str, form: list[tuple[str, str]]) -> str:
    bare, _, asked = address.partition("?")
    query = "&".join(f"{name}={value}" for name, value in sorted(pairs(asked)))
    if not form:
        return f"{bare}?{query}" if query else bare
    return f"{bare}?{query}{'.' if query else ''}" + "".join(name + value for name, value in form)


def telnyx(request: Request, *, public_key: str, guard: ReplayGuard, now: float) -> bool:
    """telnyx-signature-ed25519 over `timestamp|body`, where a GET request's body is empty.

    So two GET requests of one second are signed alike, and the second is refused: a query beside it, which
    anyone could change, does not tell it from a replay. Webhooks are to be posted.

    `public_key`: base64, as Mission Control shows it. Raises MissingPackage without the `phone` extra.
    """
    stamp = _header(request, "Telnyx-Timestamp")
    given = _header(request, "Telnyx-Signature-Ed25519")
    if not (stamp.isdecimal() and len(stamp) < 16) or abs(now - int(stamp)) > REPLAY_WINDOW_SECONDS:
        return False
    signed = f"{stamp}|".encode() + request.body
    return _ed25519_verifies(public_key, given, signed) and guard.first_time(given, now)


class MissingPackage(RuntimeError):
    """A package of the `phone` extra is needed and is not installed."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} needs the packages of the phone extra: pip install 'rejoinder[phone]'")


def _ed25519_verifies(public_key: str, signature: str, signed: bytes) -> bool:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise MissingPackage("telnyx_public_key") from None
    try:
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key, validate=True))
        key.verify(base64.b64decode(signature, validate=True), signed)
    except (InvalidSignature, ValueError, binascii.Error):
        return False
    return True


def vonage(request: Request, *, secret: str, guard: ReplayGuard, now: float) -> bool:
    """A JWT (RFC 7519) signed with HS256 as the bearer token, keyed with the account's signature secret.

    It must have been issued within the replay window, must not have expired, and its `jti` is accepted once.
    Its `payload_hash` is the SHA-256 of what was posted.
    """
    return any(_vonage_jwt(token, request.body, secret, guard, now) for token in offered_tokens(request))


def _vonage_jwt(token: str, body: bytes, secret: str, guard: ReplayGuard, now: float) -> bool:
    try:
        import jwt
    except ImportError:
        raise MissingPackage("vonage_signature_secret") from None
    try:
        claims = jwt.decode(
            token,
            secret,
            algorithms=["HS256"],
            # The times are checked in `_is_current`; for whom the token is says nothing here.
            options={"verify_exp": False, "verify_iat": False, "verify_nbf": False, "verify_aud": False},
        )
    except (jwt.InvalidTokenError, RecursionError):
        return False
    if not _is_current(claims, now):
        return False
    if body and not _any_equal(_sha256(body), [str(claims.get("payload_hash", ""))]):
        return False
    return guard.first_time(str(claims.get("jti") or token), now)


def _is_current(claims: dict[str, Any], now: float) -> bool:
    issued, expires, valid_from = (claims.get(name) for name in ("iat", "exp", "nbf"))
    if not isinstance(issued, int | float) or abs(now - issued) > REPLAY_WINDOW_SECONDS:
        return False
    if expires is not None and (not isinstance(expires, int | float) or expires < now):
        return False
    return valid_from is None or (isinstance(valid_from, int | float) and valid_from <= now + 60)


def shared_secret(request: Request, *, secret: str) -> bool:
    """The secret as the bearer token, as the password of basic authentication, or as `?token=`."""
    offered = offered_tokens(request)
    for value in request.all("Authorization"):
        scheme, _, credentials = value.partition(" ")
        if scheme.lower() == "basic":
            try:
                offered.append(
                    base64.b64decode(credentials.strip(), validate=True).decode().partition(":")[2]
                )
            except ValueError:
                continue
    return _any_equal(secret, offered)


def _header(request: Request, name: str) -> str:
    """A header's first value, empty where there is none."""
    return next(iter(request.all(name)), "")


def _base64_hmac(key: str, message: str, algorithm: str) -> str:
    return base64.b64encode(hmac.new(key.encode(), message.encode(), algorithm).digest()).decode()


def _sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _any_equal(given: str, expected: Sequence[str]) -> bool:
    return any(hmac.compare_digest(given.encode(), one.encode()) for one in expected)
