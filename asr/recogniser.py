"""Streaming recognition on a Whisper model: text that grows while the caller speaks and is never taken back.

Each pass encodes the window of audio that is not settled yet (with silence after it), decodes it once,
greedily, after the words already settled, and aligns the text with the audio. A stability policy says which
words are settled; they become forced text for the passes to come, and once the window is long they leave it
with their audio, so that a pass costs the same in the second minute as in the first. Where the
text of the pass before still holds, nothing is decoded.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, prod
from pathlib import Path
from statistics import mean

import numpy as np

from asr import hallucinations, reuse
from asr.audio import SAMPLE_RATE, Audio, as_audio
from asr.hotwords import ADVANTAGE, Hotwords
from asr.stability import AlignmentPolicy, StabilityPolicy, Word
from asr.vad import SileroVad
from asr.whisper import FRAMES_PER_SECOND, Encoded, Token, Whisper
from asr.window import Window

__all__ = ["Partial", "Recogniser", "Transcript", "Utterance", "Word"]

PADDING = 2.0  # seconds of silence that a pass sees after the voice: with less, the decoder repeats itself
LONG_WINDOW = 6.0  # a longer window gives up its settled part
KEPT_CONTEXT = 1.5  # of settled speech that stays in the window
LONGEST_WINDOW = 24.0  # nothing settled by then: the oldest part is settled or dropped anyway
LEAD_IN = 0.3  # seconds kept before the first voice
PIECE = 8.0  # seconds: more audio than this at once is heard piece by piece

STEP_SECONDS = 0.5  # of new audio make a pass worth while
LOAD = 0.4  # the share of the time that passes may take

Cancelled = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Partial:
    """What is known while the caller speaks: words that stay, and text that may still change."""

    settled: tuple[Word, ...]
    tentative: str


@dataclass(frozen=True, slots=True)
class Transcript:
    """All that was said up to `audio_seconds`; the words' texts, joined, give `text` after a space.

    `closing`: the probability of the mark that closes the text, 0 where there is none, None where nothing was
    said. It is the recogniser's own opinion of whether the sentence is over.
    """

    text: str
    words: tuple[Word, ...]
    audio_seconds: float
    closing: float | None = None


class Recogniser:
    """One CTranslate2 Whisper model, shared by all calls. Thread-safe."""

    def __init__(
        self,
        path: Path,
        *,
        threads: int = 1,
        workers: int = 1,
        compute_type: str = "int8",
        language: str = "en",
        vad: SileroVad | None = None,
        policy: Callable[[], StabilityPolicy] = AlignmentPolicy,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Loads the model in the folder `path`: any Whisper that CTranslate2 has converted.

        `threads`: of one pass; `threads` times `workers` (passes at a time) should not exceed the cores.
        `compute_type`: as in CTranslate2. `language`: a Whisper language code. `vad`: to share a loaded one.
        `policy`: makes each utterance's stability policy. `clock`: seconds, to pace `Utterance.due`.

        Raises:
            FileNotFoundError: there is no model in `path`, or a part of it is missing.
            ValueError: a file is cut short or damaged, or the model cannot do this language or compute type.
        """
        self._whisper = Whisper(
            path, threads=threads, workers=workers, compute_type=compute_type, language=language
        )
        self._vad = vad or SileroVad()
        self._policy = policy
        self._clock = clock

    def warm_up(self) -> None:
        """One pass over silence, so that the first caller does not wait for the model's first run."""
        silence = self._whisper.log_mel.frames(np.zeros(SAMPLE_RATE, np.float32))
        encoded = self._whisper.encode(silence)
        self._whisper.decode(encoded, (), 1)
        self._whisper.align(encoded, self._whisper.ids(" Yes."), len(silence))

    def open(self, *, hotwords: Sequence[str] = (), alone: Sequence[str] = ()) -> Utterance:
        """A new utterance. `hotwords`: names and products that a caller may say, in their right spelling;
        `alone`: phrases that may be all that is said."""
        window = Window(self._whisper.log_mel, self._vad.open())
        known = Hotwords(hotwords, self._whisper.ids, alone=alone)
        return Utterance(self._whisper, window, self._policy(), known, self._clock)


@dataclass(frozen=True, slots=True)
class _Heard:
    """A word and its tokens."""

    word: Word
    tokens: tuple[Token, ...]


def _ids(words: Sequence[_Heard]) -> list[int]:
    return [token.id for heard in words for token in heard.tokens]


def _log_probability(words: Sequence[_Heard]) -> float:
    return sum(log(max(token.probability, 1e-9)) for heard in words for token in heard.tokens)


class Utterance:
    """One turn of the caller. `feed` from any thread; `step` and `finish` wait for each other."""

    def __init__(
        self,
        whisper: Whisper,
        window: Window,
        policy: StabilityPolicy,
        hotwords: Hotwords,
        clock: Callable[[], float],
    ) -> None:
        self._whisper = whisper
        self._window = window
        self._policy = policy
        self._hotwords = hotwords
        self._clock = clock
        self._feeding = threading.Lock()
        self._passing = threading.Lock()
        self._pending: list[Audio] = []
        self._pending_samples = 0
        self._settled_words: list[Word] = []
        self._settled_in_window: list[_Heard] = []  # those of them whose audio is in the window
        self._tentative: list[_Heard] = []
        self._heard_to = 0.0  # the end of the audio that the last pass saw
        self._voice_heard_to = 0.0  # and of the voice in it
        self._last_cost = 0.0

    def feed(self, audio: Audio) -> None:
        """Add float32[n] at 16 kHz, any length. Costs a copy; safe beside `step` and `finish`."""
        audio = as_audio(audio)
        with self._feeding:
            self._pending.append(audio)
            self._pending_samples += len(audio)

    @property
    def due(self) -> bool:
        """Is there enough new audio for a `step` to pay, without taking more than its share of the time?"""
        return self._pending_samples / SAMPLE_RATE >= max(STEP_SECONDS, self._last_cost / LOAD)

    def step(self, cancelled: Cancelled) -> Partial:
        """One pass over the window, or none where nothing was said since the last; none when cancelled."""
        with self._passing:
            started = self._clock()
            if self._hear_pending(cancelled):
                self._settle_stable()
                self._last_cost = self._clock() - started
            return Partial(tuple(self._settled_words), "".join(heard.word.text for heard in self._tentative))

    def finish(self, cancelled: Cancelled) -> Transcript:
        """The transcript up to all that was fed. Costs nothing where the last pass heard all of the voice.

        The utterance may be fed and finished again when the caller goes on: settled words stay, the rest
        may change. Cancelled, it tells what was known.
        """
        with self._passing:
            self._hear_pending(cancelled)
            words = (*self._settled_words, *(heard.word for heard in self._tentative))
            text = "".join(word.text for word in words).strip()
            return Transcript(text, words, self._window.end, self._closing())

    def _closing(self) -> float | None:
        if not self._tentative:
            return None
        last = self._tentative[-1].tokens
        marks = len(self._whisper.closing([token.id for token in last]))
        return round(prod(token.probability for token in last[-marks:]), 3) if marks else 0.0

    def _hear_pending(self, cancelled: Cancelled) -> bool:
        """Move what was fed into the window and run a pass if one is needed; says if there was one."""
        with self._feeding:
            pending, self._pending, self._pending_samples = self._pending, [], 0
        audio = np.concatenate(pending) if pending else np.zeros(0, np.float32)
        piece = round(PIECE * SAMPLE_RATE)
        for start in range(0, len(audio), piece):
            self._append(audio[start : start + piece])
            if start + piece < len(audio) and self._listen(cancelled):
                self._settle_stable()
        return self._listen(cancelled)

    def _append(self, audio: Audio) -> None:
        self._window.append(audio)
        if not self._settled_in_window and not self._tentative:
            voice_start = self._window.voice_start
            self._window.trim((self._window.end if voice_start is None else voice_start) - LEAD_IN)

    def _unheard(self) -> bool:
        return self._window.voice_start is not None and self._window.voice_end > self._heard_to

    def _listen(self, cancelled: Cancelled) -> bool:
        """One pass if there is voice that none has heard: `_tentative` is what follows the settled words."""
        window = self._window
        if not self._unheard() or cancelled():
            return False
        voice_end = window.voice_end - window.start
        forced = _ids(self._settled_in_window)
        encoded = self._whisper.encode(window.features(PADDING))
        if cancelled():
            return False
        frames = max(2, round(voice_end * FRAMES_PER_SECOND))

        def align(ids: Sequence[int]) -> list[Token]:
            return self._whisper.align(encoded, [*forced, *ids], frames)[len(forced) :]

        tokens = self._confirmed(align) or align(self._decoded(encoded, forced))
        self._tentative = self._prefer_hotwords(self._words(tokens[: hallucinations.placed(tokens)]), align)
        self._heard_to = max(window.voice_end, window.end)
        self._voice_heard_to = window.voice_end
        if not self._settled_in_window and self._is_hallucination(voice_end):
            self._tentative = []
        return True

    def _confirmed(self, align: Callable[[Sequence[int]], list[Token]]) -> list[Token]:
        """The last pass's text in its new place if all of it still holds and nothing was said after it."""
        tokens = [token for heard in self._tentative for token in heard.tokens]
        ids = [token.id for token in tokens]
        marks = len(self._whisper.closing(ids))
        if not reuse.worth_checking(tokens, marks, self._window.voice_end - self._voice_heard_to):
            return []
        tokens = align(ids)
        return tokens if reuse.still_holds(tokens, marks, self._window.voice_end - self._window.start) else []

    def _decoded(self, encoded: Encoded, forced: Sequence[int]) -> list[int]:
        window = self._window
        voice_end = window.voice_end - window.start
        settled_to = self._settled_in_window[-1].word.end - window.start if self._settled_in_window else 0.0
        limit = hallucinations.token_limit(voice_end - settled_to)
        return hallucinations.spoken(self._whisper.decode(encoded, forced, limit), voice_end)

    def _is_hallucination(self, voice_end: float) -> bool:
        words = [heard.word for heard in self._tentative]
        probability = mean(word.probability for word in words) if words else 0.0
        voice_seconds = voice_end + self._window.start - (self._window.voice_start or 0.0)
        return hallucinations.is_hallucination(
            "".join(word.text for word in words), probability, voice_seconds
        )

    def _prefer_hotwords(
        self, words: list[_Heard], align: Callable[[Sequence[int]], list[Token]]
    ) -> list[_Heard]:
        texts = [heard.word.text for heard in words]
        for alike in self._hotwords.alike(texts):
            before, said, after = words[: alike.first], words[alike.first : alike.last], words[alike.last :]
            closing = self._whisper.closing(_ids(said[-1:]))
            tokens = align([*_ids(before), *alike.ids, *closing, *_ids(after)])
            preferred = self._words(tokens)
            if _log_probability(preferred) > _log_probability(words) - ADVANTAGE:
                words = preferred
            else:
                self._hotwords.refuse(texts, alike)
        return words

    def _words(self, tokens: Sequence[Token]) -> list[_Heard]:
        words, first = [], 0
        for text, count in self._whisper.words([token.id for token in tokens]):
            span = tokens[first : first + count]
            first += count
            # The alignment gives the first word the silence before it.
            start = max(self._window.start + span[0].start, self._window.voice_start or 0.0)
            end = max(self._window.start + span[-1].end, start)
            word = Word(text, round(start, 2), round(end, 2), round(mean(t.probability for t in span), 3))
            words.append(_Heard(word, tuple(span)))
        return words

    def _settle_stable(self) -> None:
        count = self._policy.stable([heard.word for heard in self._tentative], self._heard_to)
        self._settle(count)
        length = self._window.end - self._window.start
        if length > LONGEST_WINDOW:
            old = self._window.end - LONGEST_WINDOW / 2
            self._settle(sum(heard.word.end < old for heard in self._tentative))
            self._drop(old)
        elif length > LONG_WINDOW and self._settled_in_window:
            self._drop(self._settled_in_window[-1].word.end - KEPT_CONTEXT)

    def _settle(self, count: int) -> None:
        settled, self._tentative = self._tentative[:count], self._tentative[count:]
        self._settled_in_window.extend(settled)
        self._settled_words.extend(heard.word for heard in settled)

    def _drop(self, start: float) -> None:
        """Shorten the window to begin between two settled words, at `start` or a little before."""
        leaving = [heard for heard in self._settled_in_window if heard.word.end <= start]
        if leaving:
            start = leaving[-1].word.end
        self._settled_in_window = self._settled_in_window[len(leaving) :]
        self._window.trim(start)
