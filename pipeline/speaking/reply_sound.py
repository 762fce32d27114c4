"""The audio of one reply as it is made, and which of its words lie where: the ground for heard text."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import numpy as np

from pipeline.audio import Audio
from tts.voice import VoiceChunk


@dataclass(frozen=True, slots=True)
class TimedWord:
    """A word of the reply: its end in the reply's text (characters) and its span in the audio (seconds)."""

    end_char: int
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class TimedSentence:
    """A sentence of the reply: its raw text, where it starts in the reply's text, and at which sample."""

    text: str
    start_char: int
    start_sample: int


class ReplySound:
    """Grows at its end while it is synthesised, is read at any position, and tells what has been heard by a
    time.

    Audio is float32 mono at `rate` Hz. A filler (a hold phrase) is audio without text.
    """

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.samples = 0
        self.text = ""
        self.sentences: list[TimedSentence] = []
        self.words: list[TimedWord] = []
        self.complete = False  # nothing more will come
        self._whole = False  # and all of the text has its audio
        self.filler_samples = 0
        self._chunks: list[Audio] = []
        self._starts: list[int] = []
        self._taken = 0  # samples up to which it was read: they may have been sent
        self._changed = asyncio.Event()

    @property
    def seconds(self) -> float:
        return self.samples / self.rate

    @property
    def sounds(self) -> bool:
        """Whether anything of the text has audio."""
        return self.samples > self.filler_samples

    @property
    def said(self) -> str:
        """The text that has audio, without sentences in which the voice found nothing to say."""
        return self._with_sound(len(self.text))

    def begin_sentence(self, text: str) -> None:
        """The audio appended from here on says `text` (raw, with its white space)."""
        self.sentences.append(TimedSentence(text, len(self.text), self.samples))
        self.text += text

    def append(self, chunk: VoiceChunk) -> None:
        """Add a chunk of the sentence that began last; word spans are relative to that sentence's text and
        audio."""
        if chunk.words:
            sentence = self.sentences[-1]
            base = sentence.start_sample / self.rate
            self.words += [
                TimedWord(sentence.start_char + w.end_char, base + w.start, base + w.end) for w in chunk.words
            ]
        self._add(chunk.samples)

    def append_filler(self, samples: Audio) -> None:
        """Add audio that belongs to no text (a hold phrase), before a sentence that has no audio yet."""
        self.sentences = [
            sentence
            if sentence.start_sample < self.samples
            else replace(sentence, start_sample=self.samples + samples.size)
            for sentence in self.sentences
        ]
        self.filler_samples += samples.size
        self._add(samples)

    def withdraw(self) -> bool:
        """Take back the sentences of which nothing was read yet. Returns whether the last one was among
        them."""
        kept = [sentence for sentence in self.sentences if sentence.start_sample < self._taken]
        if len(kept) == len(self.sentences):
            return False
        first = self.sentences[len(kept)]
        self.sentences, self.text = kept, self.text[: first.start_char]
        self.words = [word for word in self.words if word.end_char <= first.start_char]
        chunks, self._chunks, self._starts, self.samples = self._chunks, [], [], 0
        for chunk in chunks:
            self._add(chunk[: first.start_sample - self.samples])
        return True

    def _add(self, samples: Audio) -> None:
        if samples.size:
            self._starts.append(self.samples)
            self._chunks.append(samples)
            self.samples += samples.size
            self._wake()

    def finish(self) -> None:
        """Nothing more will come: everything has been said."""
        self._whole = self._whole or not self.complete
        self.break_off()

    def break_off(self) -> None:
        """Nothing more will come, although some of the text may have no audio."""
        self.complete = True
        self._wake()

    def read(self, start: int, count: int) -> Audio:
        """Up to `count` samples from position `start`; fewer at the end of what there is."""
        stop = min(start + count, self.samples)
        self._taken = max(self._taken, stop)
        if start >= stop:
            return np.zeros(0, np.float32)
        index = int(np.searchsorted(self._starts, start, side="right")) - 1
        parts = []
        while start < stop:
            offset = start - self._starts[index]
            part = self._chunks[index][offset : offset + stop - start]
            parts.append(part)
            start += part.size
            index += 1
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    async def more_than(self, samples: int) -> bool:
        """Wait until there is audio beyond the position; False once there will never be any."""
        while self.samples <= samples and not self.complete:
            self._changed.clear()
            await self._changed.wait()
        return self.samples > samples

    def heard_text(self, seconds: float) -> str:
        """The reply's text up to the last word of which most was heard by then; all that has audio when it
        is over and was not broken off."""
        if self._whole and seconds >= self.seconds - 0.02:
            return self.said
        end = 0
        for word in self.words:
            if seconds >= word.start + 0.6 * (word.end - word.start):
                end = max(end, word.end_char)
        return self._with_sound(end)

    def _with_sound(self, end_char: int) -> str:
        """The text up to a character, without the sentences that have no audio."""
        starts = [*(sentence.start_sample for sentence in self.sentences), self.samples]
        sounding = [s for s, end in zip(self.sentences, starts[1:], strict=True) if end > s.start_sample]
        text = "".join(s.text[: max(0, end_char - s.start_char)] for s in sounding)
        return text if sounding[-1:] == self.sentences[-1:] else text.rstrip()

    def _wake(self) -> None:
        self._changed.set()
