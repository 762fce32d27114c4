"""Coqui voices (the package `coqui-tts`): XTTS with any speaker's recording, and VITS.

The extra `coqui` installs the package, which is under the Mozilla Public License 2.0. Weights have licences
of their own; those of XTTS forbid commercial use.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from tts.coqui_models import CoquiModel, XttsModel, load_model
from tts.estimate import timed
from tts.loudness import amplify, gain_for
from tts.pauses import CLAUSE_MARKS, SENTENCE_MARKS, gap_after
from tts.scripts import in_latin, in_other_scripts
from tts.silence import Piece, join
from tts.speakable import speakable
from tts.voice import Cancelled, Samples, VoiceChunk

log = logging.getLogger(__name__)

CALIBRATION = "1 2 3 4 5 6 7 8."
"""Said once, unheard, to learn the voice's own loudness."""
LONGEST_SECONDS, SECONDS_A_CHARACTER = 1.5, 0.15
"""A unit that lasts longer than this much and this much for each character has lost its text."""
XTTS_LICENCE = (
    "%s: the weights of XTTS are under the Coqui Public Model License: for non-commercial use only "
    "(https://coqui.ai/cpml)"
)


class CoquiVoice:
    """A `Voice` on a Coqui model.

    `model` is a folder (config.json and the weights in it), a file of weights, or a name in Coqui's catalogue
    (`tts_models/...`). `speaker` is a recording of at least a second, better six, of which XTTS takes the
    voice, or the name of one of the model's own speakers. Raises CoquiError, and ValueError for a language
    that cannot be read aloud.
    """

    def __init__(
        self,
        model: str,
        *,
        speaker: str | None = None,
        language: str = "en",
        pronunciations: Mapping[str, str] | None = None,
    ) -> None:
        speakable("", language=language)
        self.name = f"coqui:{Path(model).name}"
        self.model: CoquiModel = load_model(model, speaker=speaker, language=language.split("-")[0].lower())
        if isinstance(self.model, XttsModel):
            log.warning(XTTS_LICENCE, self.name)
        self.sample_rate = self.model.sample_rate
        self._language = language
        self._pronunciations = pronunciations
        self._gain = 1.0  # for what is said to find it out
        self._gain = gain_for(self._calibration())

    def warm_up(self) -> None:
        """Nothing: loading has already said something to learn the voice's loudness."""

    def synthesise(self, text: str, *, cancelled: Cancelled) -> Iterator[VoiceChunk]:
        """See `Voice.synthesise`. Word timings are estimates, since the networks give none; words in other
        scripts are left out and counted in the log."""
        spoken = speakable(text, pronunciations=self._pronunciations, language=self._language)
        if not spoken.spans:
            return iter(())
        if unsaid := in_other_scripts(spoken.text):
            log.info("%s has no sounds for %d words", self.name, len(unsaid))
        parts = list(parts_of(in_latin(spoken.text), self.model.longest_text))
        pieces = (
            Piece(self._chunks(part), gap_after(part if index + 1 < len(parts) else text))
            for index, part in enumerate(parts)
        )
        return timed(join(pieces, self.sample_rate, cancelled), spoken, self.sample_rate, cancelled)

    def _chunks(self, part: str) -> Iterator[VoiceChunk]:
        """One part's audio, ended where a sampled network babbles on without a text to say."""
        most = int((LONGEST_SECONDS + SECONDS_A_CHARACTER * len(part)) * self.sample_rate)
        for samples in self.model.say(part):
            if len(samples) >= most:
                log.warning("%s does not come to the end of %d characters; cut", self.name, len(part))
                yield VoiceChunk(amplify(samples[:most], self._gain))
                return
            most -= len(samples)
            yield VoiceChunk(amplify(samples, self._gain))

    def _calibration(self) -> Samples:
        chunks = self.synthesise(CALIBRATION, cancelled=lambda: False)
        return np.concatenate([np.zeros(0, np.float32), *(chunk.samples for chunk in chunks)])


def parts_of(spoken: str, longest: int) -> Iterator[str]:
    """`spoken` in parts of at most `longest` characters, each with something to say: whole sentences where
    they fit, else clauses, else words, else as many letters as fit."""
    words = [word[at : at + longest] for word in spoken.split() for at in range(0, len(word), longest)]
    while words:
        size, count, best, rank = -1, 0, 0, 0
        for index, word in enumerate(words):
            size += len(word) + 1
            if size > longest:
                break
            count = index + 1
            mark = 2 if word[-1] in SENTENCE_MARKS else int(word[-1] in CLAUSE_MARKS)
            if mark >= rank:
                best, rank = count, mark
        part = " ".join(words[: best if count < len(words) else count])
        words = words[len(part.split()) :]
        if re.search(r"[^\W_]", part):
            yield part
