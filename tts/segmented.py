"""A voice whose network says one segment at a time: what the embedded voice and Piper voices share."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tts.loudness import amplify
from tts.pauses import gap_after
from tts.scripts import in_latin
from tts.segment import Segment
from tts.silence import Piece, join
from tts.speakable import Spoken, speakable
from tts.voice import Cancelled, Samples, VoiceChunk

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Speech:
    """A segment being said: each identifier's duration in seconds, and the audio window by window."""

    seconds: npt.NDArray[np.float64]
    windows: Iterator[Samples]


class Phonemes(Protocol):
    def segments(self, spoken: str) -> list[Segment]:
        """The sentences of `spoken`, none longer than the network takes, those without a word left out."""


class SegmentNetwork(Protocol):
    def say(self, ids: Sequence[int]) -> Speech: ...


class SegmentedVoice:
    """A `Voice` made of a phonemiser and a network; both are safe across threads, so it is."""

    def __init__(
        self,
        name: str,
        sample_rate: int,
        phonemes: Phonemes,
        network: SegmentNetwork,
        *,
        language: str,
        gain: float,
        pronunciations: Mapping[str, str] | None,
        longest_last: float = float("inf"),
    ) -> None:
        """`longest_last`: see `Segment.timings`. Raises ValueError for a language it cannot read aloud."""
        speakable("", language=language)
        self.name = name
        self.sample_rate = sample_rate
        self.phonemes = phonemes
        self.network = network
        self._language = language
        self._gain = gain
        self._pronunciations = pronunciations
        self._longest_last = longest_last

    def warm_up(self) -> None:
        for _ in self.synthesise("1, 2, 3.", cancelled=lambda: False):
            pass

    def synthesise(self, text: str, *, cancelled: Cancelled) -> Iterator[VoiceChunk]:
        """See `Voice.synthesise`. Words that the voice has no sounds for are left out and counted."""
        spoken = speakable(text, pronunciations=self._pronunciations, language=self._language)
        segments = self.phonemes.segments(in_latin(spoken.text))
        self._log_unsaid(spoken, segments)
        return join(self._pieces(text, spoken, segments), self.sample_rate, cancelled)

    def _pieces(self, text: str, spoken: Spoken, segments: Sequence[Segment]) -> Iterator[Piece]:
        for index, segment in enumerate(segments):
            gap = gap_after(segment.ending if index + 1 < len(segments) else text)
            yield Piece(self._chunks(segment, spoken), gap)

    def _chunks(self, segment: Segment, spoken: Spoken) -> Iterator[VoiceChunk]:
        speech = self.network.say(segment.ids)
        words = segment.timings(speech.seconds, spoken, longest_last=self._longest_last)
        made = 0
        for samples in speech.windows:
            made += len(samples)
            started = sum(word.start * self.sample_rate < made for word in words)
            yield VoiceChunk(amplify(samples, self._gain), tuple(words[:started]))
            words = words[started:]

    def _log_unsaid(self, spoken: Spoken, segments: Sequence[Segment]) -> None:
        said = {word.place for segment in segments for word in segment.words}
        unsaid = [
            spoken.text[span.start : span.end]
            for span in spoken.spans
            if said.isdisjoint(range(span.start, span.end))
        ]
        if unsaid:
            log.info("%s has no sounds for %d words", self.name, len(unsaid))
