"""What every voice offers: text in, audio out as it is made, and when each word is heard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float32]
"""Mono audio, float32[n] in [-1, 1], at the voice's `sample_rate`."""

Cancelled = Callable[[], bool]
"""Asked between chunks; True ends the synthesis without another chunk."""


@dataclass(frozen=True, slots=True)
class WordTiming:
    """When one written word is heard.

    `start_char` and `end_char` span the word in the text given to `synthesise`; `start` and `end` are
    seconds since the first sample of that unit's audio.
    """

    start_char: int
    end_char: int
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class VoiceChunk:
    """Audio as it was made, float32[n] mono in [-1, 1], and the words whose audio begins in it.

    `broken_off`: the rest of the unit is missing, so it is not worth keeping.
    """

    samples: Samples
    words: tuple[WordTiming, ...] = ()
    broken_off: bool = False


class Voice(Protocol):
    """A voice, shared by all calls and safe to use from several threads at once."""

    @property
    def name(self) -> str: ...

    @property
    def sample_rate(self) -> int:
        """Hertz of the samples in every chunk."""

    def warm_up(self) -> None:
        """Pay the first synthesis' one-off costs now."""

    def synthesise(self, text: str, *, cancelled: Cancelled) -> Iterator[VoiceChunk]:
        """Say `text`, one sentence as the language model wrote it, and yield its audio as it is made.

        The text is made speakable inside. A unit may be of any length: what is longer than the engine says at
        once is parted where a speaker would pause. Leading silence is trimmed; the natural gap after the unit
        is the end of its audio. Text with nothing to say in it yields nothing. The concatenated chunks are
        the whole unit; their words, in order, do not overlap and lie inside its audio.
        """
