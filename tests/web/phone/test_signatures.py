"""Whom the bridge believes. Signatures are computed here from the carriers' rules, not by the code itself."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sys
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.web.phone.served import request
from web.phone import signatures
from web.phone.signatures import ReplayGuard

TOKEN = "12345abcde"
NOW = 1_760_000_000.0
SECRET = "the-signature-secret-of-an-account"


def _hmac(key: str, message: str, algorithm: str) -> str:
    return base64.b64encode(hmac.new(key.encode(), message.encode(), algorithm).digest()).decode()


# ---- Twilio


@pytest.mark.parametrize(
    "signed",
    [
        "wss://agent.example.com/phone/twilio",
        "wss://agent.example.com:443/phone/twilio",
        "wss://agent.example.com/phone/twilio/",
        "https://agent.example.com/phone/twilio",
    ],
)
@pytest.mark.parametrize("public_url", ["", "https://agent.example.com", "wss://agent.example.com/"])
def test_twilio_signs_the_address_in_whichever_way_it_is_written(signed: str, public_url: str) -> None:
    given = request("/phone/twilio", X_Twilio_Signature=_hmac(TOKEN, signed, "sha1"))
    assert signatures.twilio(given, token=TOKEN, public_url=public_url)


def test_twilio_behind_a_proxy_signs_the_public_address() -> None:
    signature = _hmac(TOKEN, "wss://voice.example.com/agents/phone/twilio", "sha1")
    given = request("/phone/twilio", host="10.0.0.7:8765", X_Twilio_Signature=signature)
    assert not signatures.twilio(given, token=TOKEN)
    assert signatures.twilio(given, token=TOKEN, public_url="https://voice.example.com/agents")
    forwarded = request(
        "/phone/twilio",
        host="10.0.0.7:8765",
        X_Forwarded_Host="voice.example.com",
        X_Twilio_Signature=_hmac(TOKEN, "wss://voice.example.com/phone/twilio", "sha1"),
    )
    assert signatures.twilio(forwarded, token=TOKEN)


def test_twilio_behind_two_proxies_signs_the_outermost() -> None:
    signed = _hmac(TOKEN, "wss://voice.example.com/phone/twilio", "sha1")
    for hosts in ("voice.example.com", "voice.example.com, inner.example.com", "voice.example.com,inner:80"):
        given = request(
            "/phone/twilio", Host="127.0.0.1:8765", X_Forwarded_Host=hosts, X_Twilio_Signature=signed
        )
        assert signatures.twilio(given, token=TOKEN)


def test_twilio_signs_a_webhooks_query_as_it_is() -> None:
    signed = "https://agent.example.com/phone/twilio/voice?CallSid=CA1&From=%2B15550100123"
    given = request(
        "/phone/twilio/voice?CallSid=CA1&From=%2B15550100123", X_Twilio_Signature=_hmac(TOKEN, signed, "sha1")
    )
    assert signatures.twilio(given, token=TOKEN)
    other = request(
        "/phone/twilio/voice?CallSid=CA1&From=%2B15550100124", X_Twilio_Signature=_hmac(TOKEN, signed, "sha1")
    )
    assert not signatures.twilio(other, token=TOKEN)


FORM = {"Content_Type": "application/x-www-form-urlencoded; charset=UTF-8"}
VOICE = "/phone/twilio/voice?agent=dentist"


def test_twilio_signs_a_posted_form_in_the_order_of_its_names() -> None:
    signed = f"https://agent.example.com{VOICE}CallSidCA1From+15550100123To"
    given = request(VOICE, X_Twilio_Signature=_hmac(TOKEN, signed, "sha1"), **FORM)
    assert signatures.twilio(replace(given, body=b"To=&From=%2B15550100123&CallSid=CA1"), token=TOKEN)
    assert not signatures.twilio(replace(given, body=b"To=&From=%2B15550100124&CallSid=CA1"), token=TOKEN)
    assert not signatures.twilio(replace(given, body=b""), token=TOKEN)


def test_twilio_signs_any_other_body_by_its_hash_in_the_address() -> None:
    path = f"{VOICE}&bodySHA256={hashlib.sha256(b'{}').hexdigest()}"
    signature = _hmac(TOKEN, f"https://agent.example.com{path}", "sha1")
    assert signatures.twilio(replace(request(path, X_Twilio_Signature=signature), body=b"{}"), token=TOKEN)
    assert not signatures.twilio(
        replace(request(path, X_Twilio_Signature=signature), body=b"[]"), token=TOKEN
    )
    unhashed = request(VOICE, X_Twilio_Signature=_hmac(TOKEN, f"https://agent.example.com{VOICE}", "sha1"))
    assert not signatures.twilio(replace(unhashed, body=b"{}"), token=TOKEN)


def test_twilio_with_sha_256_is_keyed_with_the_shared_key() -> None:
    signed = "wss://agent.example.com/phone/twilio"
    settings = "key=webhooks_sharedkey_1,algorithm=HMAC_SHA256"
    given = request(
        "/phone/twilio",
        X_Twilio_Signature=_hmac("shared", signed, "sha256"),
        X_Twilio_Webhooks_Signature_Settings=settings,
    )
    assert signatures.twilio(given, token=TOKEN, shared_key="shared")
    assert not signatures.twilio(given, token=TOKEN, shared_key="another")
    unknown = request(
        "/phone/twilio",
        X_Twilio_Signature=_hmac(TOKEN, signed, "sha1"),
        X_Twilio_Webhooks_Signature_Settings="algorithm=HMAC_MD5",
    )
    assert not signatures.twilio(unknown, token=TOKEN)


@pytest.mark.parametrize("signature", ["", "bm9wZQ==", "é", "a" * 5000])
def test_a_forged_twilio_signature_is_refused(signature: str) -> None:
    assert not signatures.twilio(request("/phone/twilio", X_Twilio_Signature=signature), token=TOKEN)


def test_a_header_given_twice_is_no_crash() -> None:
    given = request("/phone/twilio")
    given.headers["X-Twilio-Signature"] = "one"
    given.headers["X-Twilio-Signature"] = "two"
    assert not signatures.twilio(given, token=TOKEN)


# ---- Plivo


def _plivo(nonce: str = "05429567804466091622", path: str = "/phone/plivo", signed: str = "") -> Any:
    signed = signed or f"wss://agent.example.com{path}"
    return request(
        path,
        X_Plivo_Signature_V3=_hmac(TOKEN, f"{signed}.{nonce}", "sha256"),
        X_Plivo_Signature_V3_Nonce=nonce,
    )


def test_plivo_signs_address_and_nonce() -> None:
    guard = ReplayGuard()
    assert signatures.plivo(_plivo(), token=TOKEN, guard=guard, now=NOW)
    assert not signatures.plivo(_plivo("2"), token="another", guard=guard, now=NOW)


def test_plivo_sorts_a_webhooks_parameters() -> None:
    given = _plivo(
        path="/phone/plivo/answer?To=1&From=2",
        signed="https://agent.example.com/phone/plivo/answer?From=2&To=1",
    )
    assert signatures.plivo(given, token=TOKEN, guard=ReplayGuard(), now=NOW)


@pytest.mark.parametrize(
    ("path", "signed"),
    [
        ("/phone/plivo/answer", "/phone/plivo/answer?From2To1"),
        ("/phone/plivo/answer?b=2&a=1", "/phone/plivo/answer?a=1&b=2.From2To1"),
    ],
)
def test_plivo_signs_a_posted_form(path: str, signed: str) -> None:
    given = _plivo(path=path, signed=f"https://agent.example.com{signed}")
    assert not signatures.plivo(
        replace(given, body=b"To=1&From=2"), token=TOKEN, guard=ReplayGuard(), now=NOW
    )
    given.headers["Content-Type"] = "application/x-www-form-urlencoded"
    assert signatures.plivo(replace(given, body=b"To=1&From=2"), token=TOKEN, guard=ReplayGuard(), now=NOW)
    assert not signatures.plivo(
        replace(given, body=b"To=1&From=3"), token=TOKEN, guard=ReplayGuard(), now=NOW
    )


def test_a_replayed_plivo_nonce_is_refused() -> None:
    guard = ReplayGuard()
    assert signatures.plivo(_plivo(), token=TOKEN, guard=guard, now=NOW)
    assert not signatures.plivo(_plivo(), token=TOKEN, guard=guard, now=NOW + 10)


def test_a_forgery_does_not_use_up_the_nonce() -> None:
    guard = ReplayGuard()
    forged = request("/phone/plivo", X_Plivo_Signature_V3="no", X_Plivo_Signature_V3_Nonce="7")
    assert not signatures.plivo(forged, token=TOKEN, guard=guard, now=NOW)
    assert signatures.plivo(_plivo("7"), token=TOKEN, guard=guard, now=NOW)


# ---- Vonage


def _jwt(secret: str = SECRET, algorithm: str = "HS256", **changes: Any) -> str:
    claims = {"iat": NOW - 5, "jti": "c5ba8f24", "iss": "Vonage", "application_id": "app"} | changes
    parts = [{"alg": algorithm, "typ": "JWT"}, {k: v for k, v in claims.items() if v is not None}]
    signed = ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts
    )
    signature = hmac.new(secret.encode(), signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def _vonage(token: str, guard: ReplayGuard | None = None, body: bytes = b"") -> bool:
    given = request("/phone/vonage", Authorization=f"Bearer {token}")
    return signatures.vonage(replace(given, body=body), secret=SECRET, guard=guard or ReplayGuard(), now=NOW)


def test_vonages_token_is_believed_once() -> None:
    guard = ReplayGuard()
    assert _vonage(_jwt(), guard)
    assert not _vonage(_jwt(), guard)
    assert _vonage(_jwt(aud="anyone"))


def test_vonages_token_has_the_hash_of_what_was_posted() -> None:
    token = _jwt(payload_hash=hashlib.sha256(b"{}").hexdigest())
    assert _vonage(token, body=b"{}")
    assert not _vonage(token, body=b"[]")
    assert not _vonage(_jwt(), body=b"{}")


@pytest.mark.parametrize(
    "token",
    [
        _jwt("another"),
        _jwt(algorithm="none"),
        _jwt(algorithm="RS256"),
        _jwt(iat=NOW - 301),
        _jwt(iat=NOW + 301),
        _jwt(iat=None),
        _jwt(iat="now"),
        _jwt(exp=NOW - 1),
        _jwt(nbf=NOW + 120),
        "a.b",
        "a.b.c",
        "....",
        "W10.W10.W10",
        "",
    ],
)
def test_other_tokens_are_refused(token: str) -> None:
    assert not _vonage(token)


def test_vonages_token_needs_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jwt", None)
    with pytest.raises(signatures.MissingPackage, match=r"vonage_signature_secret .*rejoinder\[phone\]"):
        _vonage(_jwt())


# ---- Telnyx


def test_telnyx_signs_its_timestamp() -> None:
    key = Ed25519PrivateKey.generate()
    public = base64.b64encode(key.public_key().public_bytes_raw()).decode()

    def believes(
        stamp: str,
        signed: str,
        guard: ReplayGuard,
        public_key: str = public,
        body: bytes = b"",
        query: str = "",
    ) -> bool:
        signature = base64.b64encode(key.sign(signed.encode())).decode()
        given = request(f"/phone/telnyx{query}", Telnyx_Timestamp=stamp, Telnyx_Signature_Ed25519=signature)
        return signatures.telnyx(replace(given, body=body), public_key=public_key, guard=guard, now=NOW)

    guard = ReplayGuard()
    fresh = str(int(NOW) - 10)
    assert believes(fresh, f"{fresh}|", guard)
    assert not believes(fresh, f"{fresh}|", guard), "replayed"
    assert not believes(fresh, f"{fresh}|", guard, query="?agent=other"), "the query is not signed"
    assert not believes(fresh, f"{fresh}|body", ReplayGuard())
    assert believes(fresh, f"{fresh}|body", ReplayGuard(), body=b"body")
    old = str(int(NOW) - 301)
    assert not believes(old, f"{old}|", ReplayGuard())
    assert not believes("soon", "soon|", ReplayGuard())
    assert not believes(fresh, f"{fresh}|", ReplayGuard(), public_key="bm8=")


# ---- a shared secret


def test_a_shared_secret_comes_in_a_header_or_in_the_address() -> None:
    basic = base64.b64encode(b"asterisk:hush").decode()
    assert signatures.shared_secret(request("/phone/asterisk?token=hush"), secret="hush")
    assert signatures.shared_secret(request("/phone/asterisk", Authorization="Bearer hush"), secret="hush")
    assert signatures.shared_secret(request("/phone/asterisk", Authorization=f"Basic {basic}"), secret="hush")
    for wrong in ("Bearer loud", "Basic !!", "Basic", "hush"):
        assert not signatures.shared_secret(request("/phone/asterisk", Authorization=wrong), secret="hush")
    assert not signatures.shared_secret(request("/phone/asterisk"), secret="hush")


# ---- the memory of what was used


def test_the_guard_forgets_what_the_timestamp_refuses_anyway() -> None:
    guard = ReplayGuard(window_seconds=10)
    assert guard.first_time("a", 0.0)
    assert not guard.first_time("a", 20.0)
    assert guard.first_time("a", 20.1)


def test_the_guard_is_bounded() -> None:
    guard = ReplayGuard()
    for number in range(25_000):
        assert guard.first_time(str(number), 0.0)
    assert len(guard._seen) <= 20_000
