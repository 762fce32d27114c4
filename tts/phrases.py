"""A voice that remembers what it has said: fillers, greetings and repeated sentences cost nothing again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator

from tts.voice import Cancelled, Voice, VoiceChunk


class PhraseCache:
    """A voice around another. Whole units are kept by their text, least recently used out first.

    One cache belongs to one voice, pronunciations included. Prepared phrases stay whatever else is said.
    """

    def __init__(self, voice: Voice, *, most_seconds: float = 300.0, longest_text: int = 200) -> None:
        """Keeps at most `most_seconds` of audio, of texts of at most `longest_text` characters."""
        self._voice = voice
        self._most_samples = int(most_seconds * voice.sample_rate)
        self._longest_text = longest_text
        self._lock = threading.Lock()
        self._prepared: dict[str, tuple[VoiceChunk, ...]] = {}
        self._said: OrderedDict[str, tuple[VoiceChunk, ...]] = OrderedDict()
        self._samples = 0

    @property
    def name(self) -> str:
        return self._voice.name

    @property
    def sample_rate(self) -> int:
        return self._voice.sample_rate

    def warm_up(self) -> None:
        self._voice.warm_up()

    def prepare(self, phrases: Iterable[str]) -> None:
        """Synthesise phrases now and keep them, so that a filler or a greeting can be heard at once."""
        for phrase in phrases:
            chunks = tuple(self._voice.synthesise(phrase, cancelled=lambda: False))
            with self._lock:
                self._prepared[phrase] = chunks

    def synthesise(self, text: str, *, cancelled: Cancelled) -> Iterator[VoiceChunk]:
        """See `Voice.synthesise`."""
        remembered = self._recall(text)
        if remembered is not None:
            for chunk in remembered:
                if cancelled():
                    return
                yield chunk
            return
        stopped = False

        def stop() -> bool:
            nonlocal stopped
            stopped = stopped or cancelled()
            return stopped

        made = []
        for chunk in self._voice.synthesise(text, cancelled=stop):
            made.append(chunk)
            yield chunk
        if not stopped:
            self._keep(text, tuple(made))

    def _recall(self, text: str) -> tuple[VoiceChunk, ...] | None:
        with self._lock:
            if text in self._prepared:
                return self._prepared[text]
            if text in self._said:
                self._said.move_to_end(text)
            return self._said.get(text)

    def _keep(self, text: str, chunks: tuple[VoiceChunk, ...]) -> None:
        if len(text) > self._longest_text:
            return
        with self._lock:
            self._samples += _size(chunks) - _size(self._said.pop(text, ()))
            self._said[text] = chunks
            while self._samples > self._most_samples:
                _, oldest = self._said.popitem(last=False)
                self._samples -= _size(oldest)


def _size(chunks: tuple[VoiceChunk, ...]) -> int:
    return sum(len(chunk.samples) for chunk in chunks)
