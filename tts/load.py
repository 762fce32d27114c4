"""A voice by its name in the configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping, Set
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from tts.coqui import CoquiVoice
from tts.hibari import HibariVoice
from tts.piper import PiperVoice
from tts.remote import RemoteSettings, RemoteVoice
from tts.voice import Voice

SAMPLE_RATES = range(8_000, 192_001)
"""Of a server's audio, in hertz: from a telephone's on."""


def load_voice(
    spec: str,
    *,
    threads: int = 1,
    cache: Path | None = None,
    language: str = "en",
    pronunciations: Mapping[str, str] | None = None,
    path: Path | None = None,
    api_key: str | None = None,
) -> Voice:
    """The voice that `spec` names.

    - `hibari` or `hibari:NAME`: the embedded voice, or another of `hibari-tts`.
    - `piper:PATH`: a Piper voice's `.onnx` file or its folder, with `?speaker=NAME_OR_NUMBER` behind it where
      it has several; `piper` alone takes `path`.
    - `coqui:PATH_OR_NAME`, with `?speaker=FILE_OR_NAME` behind it: a Coqui model (XTTS, VITS) and who speaks.
    - `http(s)://HOST/v1?model=NAME&voice=NAME&sample_rate=HERTZ`: an OpenAI-compatible server, asked with
      `api_key`; in English the embedded voice steps in when it fails.

    `language` is what is spoken, an ISO 639-1 code; a Piper voice has its own. `cache` is the folder for
    voices that are fetched; `pronunciations` maps written words to how they are said. Raises ValueError for
    an unknown spec or a language that the voice does not speak, and what the voices raise for missing files
    and programs.
    """
    kind, _, rest = spec.partition(":")
    if kind == "hibari":
        if not _is_english(language):
            raise ValueError(f"the embedded voice speaks English, not {language!r}; choose another voice")
        return HibariVoice(rest or "heart", threads=threads, cache=cache, pronunciations=pronunciations)
    if kind == "piper" and (rest or path):
        file, _, query = rest.partition("?")
        return PiperVoice(
            Path(os.path.expanduser(file)) if file else path or Path(),
            speaker=_options(query, {"speaker"}, spec).get("speaker"),
            threads=threads,
            pronunciations=pronunciations,
        )
    if kind == "coqui" and rest:
        model, _, query = rest.partition("?")
        speaker = _options(query, {"speaker"}, spec).get("speaker")
        return CoquiVoice(model, speaker=speaker, language=language, pronunciations=pronunciations)
    if names_a_server(spec):
        return RemoteVoice(
            _remote_settings(spec, api_key),
            fallback=HibariVoice(threads=threads, pronunciations=pronunciations)
            if _is_english(language)
            else None,
            pronunciations=pronunciations,
            language=language,
        )
    raise ValueError(
        f"unknown voice {spec!r}; use hibari, hibari:NAME, piper:PATH, coqui:PATH_OR_NAME?speaker=FILE "
        "or http(s)://HOST/v1?model=NAME&voice=NAME"
    )


def _is_english(language: str) -> bool:
    return language.split("-")[0].lower() == "en"


def names_a_server(spec: str) -> bool:
    """Whether `spec` names a server."""
    return spec.startswith(("http:", "https:"))


def _remote_settings(spec: str, api_key: str | None) -> RemoteSettings:
    parts = urlsplit(spec)
    options = _options(parts.query, {"model", "voice", "sample_rate"}, spec)
    url = urlunsplit(parts._replace(query="", fragment=""))
    rate = options.get("sample_rate", "24000")
    if not (rate.isascii() and rate.isdecimal() and int(rate) in SAMPLE_RATES):
        raise ValueError(
            f"sample_rate={rate} in voice {spec!r}: give whole hertz, {SAMPLE_RATES[0]} to {SAMPLE_RATES[-1]}"
        )
    return RemoteSettings(
        url, options.get("model", "tts-1"), options.get("voice", "alloy"), int(rate), api_key
    )


def _options(query: str, known: Set[str], spec: str) -> dict[str, str]:
    options = dict(parse_qsl(query))
    if unknown := options.keys() - known:
        raise ValueError(f"unknown option {', '.join(sorted(unknown))} in voice {spec!r}")
    return options
