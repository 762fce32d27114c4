"""A voice behind an OpenAI-compatible `/v1/audio/speech`, streamed as PCM, with a fallback."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import httpx
import numpy as np
import soxr

from tts.estimate import timed
from tts.pauses import gap_after
from tts.silence import Piece, join
from tts.speakable import speakable
from tts.voice import Cancelled, Samples, Voice, VoiceChunk

log = logging.getLogger(__name__)

TRIES = 2
CONNECT_SECONDS, READ_SECONDS = 2.0, 5.0
CHUNK_SECONDS = 0.02
WORTH_ANOTHER_TRY = frozenset({408, 409, 425, 429, 500, 502, 503, 504})


class RemoteVoiceError(RuntimeError):
    """The server did not give any audio for a unit."""


@dataclass(frozen=True, slots=True)
class RemoteSettings:
    """Where and how to ask: `url` ends in `/v1`; `sample_rate` is the server's PCM rate in hertz."""

    url: str
    model: str = "tts-1"
    voice: str = "alloy"
    sample_rate: int = 24_000
    api_key: str | None = None


class RemoteVoice:
    """Text in a POST, 16-bit mono PCM out as the server makes it.

    A failure before the first audio is tried again, then said by `fallback`; one after it ends the unit,
    since what was heard cannot be taken back. Both are logged. Without a fallback RemoteVoiceError is raised.
    """

    def __init__(
        self,
        settings: RemoteSettings,
        *,
        fallback: Voice | None = None,
        pronunciations: Mapping[str, str] | None = None,
        language: str = "en",
        client: httpx.Client | None = None,
    ) -> None:
        """`language`: of the numbers and abbreviations in the text. Raises ValueError for one that cannot be
        read aloud."""
        speakable("", language=language)
        self.name = f"remote:{settings.model}:{settings.voice}"
        self.sample_rate = settings.sample_rate
        self._settings = settings
        self._fallback = fallback
        self._pronunciations = pronunciations
        self._language = language
        self._client = client or httpx.Client(timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS))

    def warm_up(self) -> None:
        """Make the fallback ready; the server is not asked, since every request may cost."""
        if self._fallback is not None:
            self._fallback.warm_up()

    def synthesise(self, text: str, *, cancelled: Cancelled) -> Iterator[VoiceChunk]:
        """See `Voice.synthesise`. Word timings are estimates, since the protocol has none."""
        spoken = speakable(text, pronunciations=self._pronunciations, language=self._language)
        if not spoken.spans:
            return
        broken: list[str] = []
        audio = self._audio(spoken.text, cancelled, broken)
        remote = Piece((VoiceChunk(samples) for samples in audio), gap_after(text))
        chunks = join([remote], self.sample_rate, cancelled)
        try:
            yield from timed(chunks, spoken, self.sample_rate, cancelled)
            if broken:
                yield VoiceChunk(np.zeros(0, np.float32), broken_off=True)
        except RemoteVoiceError as error:
            if self._fallback is None:
                raise
            log.warning("%s: %s; saying it with %s", self.name, error, self._fallback.name)
            yield from _at_rate(self._fallback, text, self.sample_rate, cancelled)

    def _audio(self, text: str, cancelled: Cancelled, broken: list[str]) -> Iterator[Samples]:
        """What the server sends; why it broke off, if it did, goes to `broken`."""
        for attempt in range(1, TRIES + 1):
            started = False
            try:
                for samples in self._request(text):
                    started = True
                    yield samples
                    if cancelled():
                        return
                if started:
                    return
                reason = "the server sent no audio"
            except httpx.HTTPError as error:
                reason = f"{type(error).__name__}: {error}".rstrip(": ")
                if started:
                    log.warning("%s: the audio of a unit broke off: %s", self.name, reason)
                    broken.append(reason)
                    return
                if isinstance(error, httpx.HTTPStatusError) and not _worth_another_try(error):
                    break
            if cancelled():
                return
            if attempt < TRIES:
                log.info("%s: %s; trying again", self.name, reason)
        raise RemoteVoiceError(f"no audio from {self._settings.url}: {reason}")

    def _request(self, text: str) -> Iterator[Samples]:
        settings = self._settings
        headers = {"Authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
        body = {"model": settings.model, "voice": settings.voice, "input": text, "response_format": "pcm"}
        url = f"{settings.url.rstrip('/')}/audio/speech"
        with self._client.stream("POST", url, json=body, headers=headers) as response:
            response.raise_for_status()
            kind = response.headers.get("content-type", "")
            if kind.startswith(("application/json", "text/")):
                raise httpx.DecodingError(f"the server answered with {kind} instead of audio")
            rest = b""
            for data in response.iter_bytes(2 * int(CHUNK_SECONDS * settings.sample_rate)):
                data = rest + data
                whole = len(data) - len(data) % 2
                rest = data[whole:]
                if whole:
                    yield np.frombuffer(data[:whole], "<i2").astype(np.float32) / np.float32(32768)


def _worth_another_try(error: httpx.HTTPStatusError) -> bool:
    return error.response.status_code in WORTH_ANOTHER_TRY


def _at_rate(voice: Voice, text: str, sample_rate: int, cancelled: Cancelled) -> Iterator[VoiceChunk]:
    """The voice's chunks at another sample rate; word timings are in seconds and stay as they are."""
    if voice.sample_rate == sample_rate:
        yield from voice.synthesise(text, cancelled=cancelled)
        return
    stream = soxr.ResampleStream(voice.sample_rate, sample_rate, 1, dtype="float32")
    for chunk, last in _one_ahead(voice.synthesise(text, cancelled=cancelled)):
        samples = np.clip(stream.resample_chunk(chunk.samples, last=last), -1.0, 1.0)
        yield VoiceChunk(samples, chunk.words)


def _one_ahead(chunks: Iterator[VoiceChunk]) -> Iterator[tuple[VoiceChunk, bool]]:
    """Each chunk and whether it is the last."""
    held: VoiceChunk | None = None
    for chunk in chunks:
        if held is not None:
            yield held, False
        held = chunk
    if held is not None:
        yield held, True
