"""The service's settings: flags over `REJOINDER_*` variables over `rejoinder.toml` over defaults."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from pipeline import places
from pipeline.addresses import is_host, listens_here_only, plain_host
from pipeline.models import catalogue
from pipeline.text_files import NotToml, NotUtf8, read_toml

ENVIRONMENT = "REJOINDER_"
FILE_NAME = "rejoinder.toml"
LLM_ALIASES = {"small": "qwen2.5-coder-0.5b", "smallest": "smollm2-135m"}


class ConfigError(ValueError):
    """A setting is wrong or unknown. The message names it, where it came from and what is accepted."""


def _printable(secret: SecretStr) -> SecretStr:
    """Without the line break of the file it came from.

    What no header can carry is refused here, where a secret is never repeated: an HTTP client's error would.
    """
    value = secret.get_secret_value().strip()
    if not value.isprintable():
        raise ValueError("it holds characters that cannot be sent")
    return SecretStr(value)


def _ascii(secret: SecretStr) -> SecretStr:
    if not secret.get_secret_value().isascii():
        raise ValueError("it holds characters that cannot be sent")
    return secret


_Secret = Annotated[SecretStr, AfterValidator(_printable)]
_Key = Annotated[_Secret, AfterValidator(_ascii)]
"""What a request of ours sends in a header."""


class Settings(BaseSettings):
    """Every setting, with what it accepts. Built from its arguments alone; `load` reads the other sources."""

    model_config = SettingsConfigDict(
        extra="forbid", frozen=True, env_prefix=ENVIRONMENT, env_ignore_empty=True
    )

    host: str = Field(default="127.0.0.1", description="address to listen on")
    port: int = Field(default=8765, ge=0, le=65535, description="TCP port, 0 to 65535 (0: any free one)")
    auth_token: _Secret | None = Field(default=None, description="bearer token that clients must present")
    allow_unauthenticated: bool = Field(
        default=False, description="true or false; true serves beyond this machine without a token"
    )
    allowed_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="other web origins whose pages may call, as a list or separated by commas"
    )

    agent: str = Field(default="receptionist", description="an agent's name, or the path of its TOML file")
    agents_dir: Path | None = Field(default=None, description="a folder with more agents")

    asr_model: str = Field(
        default="whisper-base",
        description="whisper-base, whisper-tiny.en, or a folder with a CTranslate2 Whisper model",
    )
    asr_threads: int = Field(default=1, ge=1, le=256, description="threads of the recogniser, 1 to 256")
    llm: str = Field(
        default="qwen2.5-coder-1.5b",
        description="qwen2.5-coder-1.5b, small, smallest, the path of a GGUF file or Hugging Face folder, "
        "or the http(s) address of an OpenAI-compatible server",
    )
    llm_threads: int = Field(default=2, ge=1, le=256, description="threads of the language model, 1 to 256")
    llm_context: int = Field(
        default=4096, ge=512, le=1 << 20, description="tokens of context kept for a call, 512 to 1048576"
    )
    llm_remote_model: str = Field(
        default="default", description="the model to ask for when llm is a server's address"
    )
    llm_api_key: _Key | None = Field(default=None, description="the key of that server")
    draft_model: str = Field(default="", description="a smaller language model that drafts; empty: none")
    draft_heads: str = Field(
        default="",
        description="what drafts from inside the language model: a folder that `rejoinder llm train-heads` "
        "wrote, published Medusa heads or an EAGLE head, mtp (the checkpoint's own prediction layer), or "
        "early-exit:LAYERS; empty: none",
    )
    speculate: bool = Field(
        default=True,
        description="true or false; draft the answer before it is decided that the turn is over",
    )
    anticipate: bool = Field(
        default=True, description="true or false; begin that draft a tenth of a second into the silence"
    )
    voice: str = Field(
        default="hibari",
        description="hibari, piper:PATH, coqui:PATH_OR_NAME?speaker=FILE, or the address of a speech server",
    )
    voice_api_key: _Key | None = Field(default=None, description="the key of that server")

    max_calls: int = Field(default=4, ge=1, le=10_000, description="concurrent calls, 1 to 10000")
    max_call_seconds: float = Field(
        default=1800, gt=0, description="seconds after which a call is ended, above 0"
    )
    max_message_bytes: int = Field(
        default=1 << 20,
        ge=4096,
        le=1 << 28,
        description="largest message from a client, 4096 to 268435456 bytes",
    )
    send_timeout_seconds: float = Field(
        default=5, gt=0, le=600, description="seconds a client may take to accept a message, up to 600"
    )

    latency_log: Path = Field(
        default_factory=lambda: places.data() / "latency.db",
        description="the SQLite file with one row a turn",
    )
    store_transcripts: bool = Field(
        default=True, description="true or false; keep what was said in the latency log"
    )

    public_url: str = Field(
        default="",
        description="the address at which telephone carriers reach the service, as https://HOST/PATH",
    )
    phone_unsigned: bool = Field(
        default=False,
        description="true or false; true takes calls from carriers that do not prove who they are",
    )
    mask_caller_numbers: bool = Field(
        default=True, description="true or false; show only the last digits of callers' numbers"
    )
    audiosocket_port: int = Field(
        default=0, ge=0, le=65535, description="TCP port for Asterisk's AudioSocket, 0 to 65535 (0: none)"
    )
    asterisk_secret: _Secret | None = Field(default=None, description="the secret that Asterisk presents")
    twilio_auth_token: _Secret | None = Field(default=None, description="the auth token of a Twilio account")
    twilio_shared_key: _Secret | None = Field(
        default=None, description="the shared key of Twilio accounts that sign with HMAC-SHA256"
    )
    telnyx_public_key: str = Field(default="", description="Telnyx's public key, in base64")
    telnyx_stream_token: _Secret | None = Field(default=None, description="the token that Telnyx presents")
    telnyx_api_key: _Key | None = Field(default=None, description="the API key of a Telnyx account")
    plivo_auth_id: str = Field(default="", description="the auth id of a Plivo account")
    plivo_auth_token: _Secret | None = Field(default=None, description="the auth token of a Plivo account")
    vonage_application_id: str = Field(default="", description="the id of a Vonage application")
    vonage_private_key: Path | None = Field(
        default=None, description="the application's private key, a PEM file"
    )
    vonage_signature_secret: _Secret | None = Field(
        default=None, description="the signature secret of a Vonage account"
    )

    _origins: dict[str, str] = {}

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)

    @field_validator("*", mode="before")
    @classmethod
    def _without_nul(cls, value: object) -> object:
        """The system takes it for the end of a name, Python refuses it in one."""
        if isinstance(value, str) and "\0" in value:
            raise ValueError("it holds a NUL character")
        return value

    @field_validator("allowed_origins", mode="before")
    @classmethod
    def _split_at_commas(cls, value: object) -> object:
        return (
            [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value
        )

    @field_validator("allowed_origins")
    @classmethod
    def _as_browsers_write(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(value if value in ("*", "null") else _origin(value) for value in values)

    @field_validator("host")
    @classmethod
    def _in_one_spelling(cls, value: str) -> str:
        if not is_host(value):
            raise ValueError("neither a host's name nor an address; the port is a setting of its own")
        return plain_host(value)

    @field_validator("public_url")
    @classmethod
    def _with_host(cls, value: str) -> str:
        """Signatures are checked against it: one without a host would have every call refused as forged."""
        if value and not (is_url(value) and urlsplit(value).hostname):
            raise ValueError("not the address of a server")
        return value

    @field_validator("llm", "voice")
    @classmethod
    def _with_server(cls, value: str) -> str:
        """Where it names one; `port` raises what is wrong with it."""
        if is_url(value) and not ((parts := urlsplit(value)).hostname and parts.port != 0):
            raise ValueError("not the address of a server")
        return value

    @field_validator("llm", "draft_model")
    @classmethod
    def _language_model(cls, value: str, info: ValidationInfo) -> str:
        value = LLM_ALIASES.get(value, value)
        elsewhere = info.field_name == "llm" and is_url(value)  # drafts from another machine come too late
        return value if elsewhere or not value else _known_model(value, "language")

    @field_validator("asr_model")
    @classmethod
    def _recogniser(cls, value: str) -> str:
        return _known_model(value, "recognition")

    @field_validator("agents_dir", "latency_log", "vonage_private_key")
    @classmethod
    def _home(cls, value: Path | None) -> Path | None:
        return places.expanded(value) if value else None

    @model_validator(mode="after")
    def _not_open_to_everyone(self) -> Self:
        if not (self.auth_token or self.allow_unauthenticated or listens_here_only(self.host)):
            raise ValueError(
                f"host {self.host or '(every address)'} can be reached from other machines: set auth_token, "
                "or allow_unauthenticated = true to serve anyone"
            )
        if self.phone_unsigned and not listens_here_only(self.host):
            raise ValueError("phone_unsigned lets anyone call: it is for host 127.0.0.1 only")
        return self

    def origin(self, name: str) -> str:
        """Where a setting's value came from: "default", "flag", a variable of the environment, or a file."""
        return self._origins.get(name, "default")


class _Source(NamedTuple):
    """Raw values of one source, and how to call it when it is the origin of a setting."""

    values: Mapping[str, Any]
    origin: str


def load(flags: Mapping[str, Any] | None = None, *, file: Path | None = None) -> Settings:
    """Settings from every source. `flags`: by setting; None is a flag not given.

    `file`: the TOML file. None takes the one that REJOINDER_CONFIG names, else rejoinder.toml in the
    working folder, where there is one. Raises ConfigError.
    """
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    sources = [
        _from_file(file),
        _Source(EnvSettingsSource(Settings)(), "the environment"),
        _Source(given, "flag"),
    ]
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for source in sources:
        for name, value in source.values.items():
            values[name] = value
            variable = f"{ENVIRONMENT}{name.upper()}"
            origins[name] = variable if source.origin == "the environment" else source.origin
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise ConfigError(_explain(error, origins)) from None
    settings._origins = origins
    return settings


def describe(settings: Settings) -> dict[str, dict[str, Any]]:
    """Every setting's value (secrets masked, JSON types) and source."""
    values = settings.model_dump(mode="json")
    return {
        name: {"value": values[name], "source": settings.origin(name)} for name in type(settings).model_fields
    }


def _from_file(file: Path | None) -> _Source:
    variable = os.environ.get(f"{ENVIRONMENT}CONFIG")  # an empty one counts as none, as with the settings
    named = file or (Path(variable) if variable else None)
    path = named or Path(FILE_NAME)
    if named is None and not os.path.isfile(path):  # also where this folder may not be looked into
        return _Source({}, str(path))
    try:
        values = read_toml(path)
    except OSError as error:
        raise ConfigError(f"cannot read the configuration file {path}: {error.strerror}") from error
    except (NotToml, NotUtf8) as error:
        raise ConfigError(str(error)) from error
    unknown = [_unknown(name) for name in values if name not in Settings.model_fields]
    if unknown:
        raise ConfigError("\n".join(f"{path}: {problem}" for problem in unknown))
    return _Source(values, str(path))


def _unknown(name: str) -> str:
    close = difflib.get_close_matches(name, Settings.model_fields, n=1)
    hint = f"did you mean {close[0]!r}?" if close else "`rejoinder config` lists the settings there are."
    return f"there is no setting {name!r}; {hint}"


def _explain(error: ValidationError, origins: Mapping[str, str]) -> str:
    """One line a problem: setting, value (not of a secret), source, what is wrong, what is accepted."""
    lines = []
    for problem in error.errors():
        message = problem["msg"].removeprefix("Value error, ")
        if not problem["loc"]:
            lines.append(message)
            continue
        name = str(problem["loc"][0])
        field = Settings.model_fields.get(name)
        if field is None:
            lines.append(f"{_unknown(name)} (from {origins.get(name, 'flag')})")
            continue
        value = "" if "Secret" in str(field.annotation) else f" = {problem['input']!r}"
        lines.append(
            f"{name}{value} (from {origins.get(name, 'default')}): {message}. Accepted: {field.description}."
        )
    return "\n".join(lines)


def _known_model(value: str, role: str) -> str:
    """A model of this role in the catalogue, or an existing path."""
    known = [artifact.name for artifact in catalogue.artifacts().values() if artifact.role == role]
    if value in known or places.exists(places.expanded(value)):
        return value
    close = difflib.get_close_matches(value, [*known, *LLM_ALIASES], n=1)
    raise ValueError(
        f"neither a known model nor an existing path{f' (did you mean {close[0]!r}?)' if close else ''}"
    )


def is_url(value: str) -> bool:
    """Whether a setting names a server."""
    return value.startswith(("http://", "https://"))


def _origin(value: str) -> str:
    """An origin as a browser sends it: in small letters, without a slash at the end or the usual port."""
    parts = urlsplit(value.strip().lower())
    if not parts.scheme or not parts.hostname or parts.path not in ("", "/") or parts.query:
        raise ValueError(f"{value} is no origin, as https://HOST[:PORT]")
    usual = {"http": ":80", "https": ":443"}.get(parts.scheme, "")
    return f"{parts.scheme}://{parts.netloc.removesuffix(usual)}"
