"""A voice by its name in the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from tts.hibari import HibariVoice
from tts.piper import PiperVoice
from tts.remote import RemoteSettings, RemoteVoice
from tts.voice import Voice


def load_voice(
    spec: str,
    *,
    threads: int = 1,
    cache: Path | None = None,
    pronunciations: Mapping[str, str] | None = None,
    path: Path | None = None,
    api_key: str | None = None,
) -> Voice:
    """The voice that `spec` names.

    - `hibari` or `hibari:NAME`: the embedded voice, or another of `hibari-tts`.
    - `piper:PATH`: a Piper voice's `.onnx` file or its folder; `piper` alone takes `path`.
    - `http(s)://HOST/v1?model=NAME&voice=NAME&sample_rate=HERTZ`: an OpenAI-compatible server, asked with
      `api_key`; the embedded voice steps in when it fails.

    `cache` is the folder for voices that are fetched; `pronunciations` maps written words to how they are
    said. Raises ValueError for an unknown spec, and what the voices raise for missing files and programs.
    """
    kind, _, rest = spec.partition(":")
    if kind == "hibari":
        return HibariVoice(rest or "heart", threads=threads, cache=cache, pronunciations=pronunciations)
    if kind == "piper" and (rest or path):
        return PiperVoice(
            Path(rest).expanduser() if rest else path or Path(),
            threads=threads,
            pronunciations=pronunciations,
        )
    if kind in ("http", "https"):
        fallback = HibariVoice(threads=threads, pronunciations=pronunciations)
        return RemoteVoice(_remote_settings(spec, api_key), fallback=fallback, pronunciations=pronunciations)
    raise ValueError(
        f"unknown voice {spec!r}; use hibari, hibari:NAME, piper:PATH or http(s)://HOST/v1?model=NAME&voice=NAME"
    )


def _remote_settings(spec: str, api_key: str | None) -> RemoteSettings:
    parts = urlsplit(spec)
    options = dict(parse_qsl(parts.query))
    if unknown := options.keys() - {"model", "voice", "sample_rate"}:
        raise ValueError(f"unknown option {', '.join(sorted(unknown))} in voice {spec!r}")
    url = urlunsplit(parts._replace(query="", fragment=""))
    sample_rate = int(options.get("sample_rate", 24_000))
    return RemoteSettings(
        url, options.get("model", "tts-1"), options.get("voice", "alloy"), sample_rate, api_key
    )
