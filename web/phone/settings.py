"""The settings that the phone bridge reads."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from pydantic import SecretStr


class PhoneSettings(Protocol):
    """The part of `pipeline.config.Settings` that is the phone's; an unset secret is None."""

    @property
    def host(self) -> str: ...
    @property
    def send_timeout_seconds(self) -> float: ...
    @property
    def public_url(self) -> str: ...
    @property
    def phone_unsigned(self) -> bool: ...
    @property
    def mask_caller_numbers(self) -> bool: ...
    @property
    def twilio_auth_token(self) -> SecretStr | None: ...
    @property
    def twilio_shared_key(self) -> SecretStr | None: ...
    @property
    def telnyx_public_key(self) -> str: ...
    @property
    def telnyx_stream_token(self) -> SecretStr | None: ...
    @property
    def telnyx_api_key(self) -> SecretStr | None: ...
    @property
    def plivo_auth_id(self) -> str: ...
    @property
    def plivo_auth_token(self) -> SecretStr | None: ...
    @property
    def vonage_signature_secret(self) -> SecretStr | None: ...
    @property
    def vonage_application_id(self) -> str: ...
    @property
    def vonage_private_key(self) -> Path | None: ...
    @property
    def asterisk_secret(self) -> SecretStr | None: ...
    @property
    def audiosocket_port(self) -> int: ...


def secret(value: SecretStr | None) -> str:
    """A secret's text, empty where it is not set."""
    return value.get_secret_value() if value is not None else ""


def masked(number: str) -> str:
    """A caller's number of which only the last three digits are left: enough to tell callers apart."""
    return "*" * max(0, len(number) - 3) + number[-3:] if len(number) > 5 else "*" * len(number)
