"""Voices that have some of their audio ready: phrases known before any call, and what one call has said."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator

from tts.voice import Cancelled, Voice, VoiceChunk

MOST_BYTES = 4 << 20
"""Of a call's repeated sentences: about 45 seconds of audio at 24 kHz."""
LONGEST_TEXT = 200
"""Characters of a sentence that may come again."""

Chunks = tuple[VoiceChunk, ...]


class PreparedVoice:
    """A voice with phrases that were synthesised beforehand, so that they are heard at once.

    It keeps nothing else of what it says, so it can be shared by all calls. The phrases belong to this voice,
    its pronunciations included.
    """

    def __init__(self, voice: Voice, phrases: Iterable[str] = ()) -> None:
        self.name = voice.name
        self.sample_rate = voice.sample_rate
        self._voice = voice
        self._prepared: dict[str, Chunks] = {}
        self.prepare(phrases)

    def warm_up(self) -> None:
        self._voice.warm_up()

    def prepare(self, phrases: Iterable[str]) -> None:
        """Synthesise more phrases now and keep them."""
        for phrase in phrases:
            if phrase not in self._prepared:
                self._prepared[phrase] = tuple(self._voice.synthesise(phrase, cancelled=lambda: False))

    @property
    def without_sound(self) -> tuple[str, ...]:
        """Prepared phrases in which the voice found nothing to say."""
        return tuple(phrase for phrase, chunks in self._prepared.items() if not _size(chunks))

    def synthesise(self, text: str, *, cancelled: Cancelled) -> Iterator[VoiceChunk]:
        """See `Voice.synthesise`."""
        if text in self._prepared:
            return _again(self._prepared[text], cancelled)
        return self._voice.synthesise(text, cancelled=cancelled)


class PhraseCache:
    """A voice that remembers the sentences of one call; what is said again costs nothing again.

    Whole units are kept by their text, the least recently used leave first. It holds what a caller was told,
    so it lives as long as the call and is never shared with another.
    """

    def __init__(self, voice: Voice, *, most_bytes: int = MOST_BYTES) -> None:
        self.name = voice.name
        self.sample_rate = voice.sample_rate
        self._voice = voice
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._said: OrderedDict[str, Chunks] = OrderedDict()
        self._bytes = 0

    def warm_up(self) -> None:
        self._voice.warm_up()

    def synthesise(self, text: str, *, cancelled: Cancelled) -> Iterator[VoiceChunk]:
        """See `Voice.synthesise`."""
        remembered = self._recall(text)
        if remembered is not None:
            yield from _again(remembered, cancelled)
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
        if not stopped and not any(chunk.broken_off for chunk in made):
            self._keep(text, tuple(made))

    def _recall(self, text: str) -> Chunks | None:
        with self._lock:
            if text in self._said:
                self._said.move_to_end(text)
            return self._said.get(text)

    def _keep(self, text: str, chunks: Chunks) -> None:
        if len(text) > LONGEST_TEXT:
            return
        with self._lock:
            self._bytes += _size(chunks) - _size(self._said.pop(text, ()))
            self._said[text] = chunks
            while self._bytes > self._most_bytes:
                _, oldest = self._said.popitem(last=False)
                self._bytes -= _size(oldest)


def _again(chunks: Chunks, cancelled: Cancelled) -> Iterator[VoiceChunk]:
    for chunk in chunks:
        if cancelled():
            return
        yield chunk


def _size(chunks: Chunks) -> int:
    return sum(chunk.samples.nbytes for chunk in chunks)
