"""Whisper by CTranslate2, one window at a time: encode, decode, align.

faster-whisper's `transcribe` pads every window to 30 s and decodes with beams and fallbacks. A conversation
needs the parts: the encoder over only as much audio as there is, a greedy decoder that goes on from forced
text, and the alignment of text with audio (dynamic time warping over cross-attention, as for Whisper's word
timestamps), which also yields each token's probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
from faster_whisper.tokenizer import Tokenizer

from asr.features import Features, LogMel, normalise
from asr.model_folder import check_folder, damaged, read_tokenizer

FRAMES_PER_SECOND = 100
MAX_SECONDS = 30.0  # what the encoder has positions for
_DECODER_POSITIONS = 448
_UNSPACED = frozenset({"zh", "ja", "th", "lo", "my", "yue"})  # languages written without spaces between words

Encoded = Any  # ctranslate2.StorageView of shape [1, n_frames / 2, width]


@dataclass(frozen=True, slots=True)
class Token:
    """One text token and its place in the window: seconds from the window's start, probability in [0, 1]."""

    id: int
    start: float
    end: float
    probability: float


@dataclass(frozen=True, slots=True)
class DecodedSegment:
    """The text between two of the decoder's timestamps, in seconds; `end` is None where it was cut short."""

    start: float
    end: float | None
    ids: tuple[int, ...]


class Whisper:
    """One model, shared by all calls. Thread-safe: `workers` passes run at a time, the others wait."""

    def __init__(self, path: Path, *, threads: int, workers: int, compute_type: str, language: str) -> None:
        check_folder(path)
        self._vocabulary = read_tokenizer(path / "tokenizer.json")
        try:
            self._model = ctranslate2.models.Whisper(
                str(path), compute_type=compute_type, intra_threads=threads, inter_threads=workers
            )
        except RuntimeError as error:
            raise damaged(path / "model.bin", str(error)) from error
        multilingual = self._model.is_multilingual
        if not multilingual and language != "en":
            raise ValueError(f"the model in {path} hears English only, not {language!r}")
        self._space = self._vocabulary.token_to_id("Ġ")
        self._tokenizer = Tokenizer(self._vocabulary, multilingual, task="transcribe", language=language)
        self._spaced = language not in _UNSPACED
        self._start = self._tokenizer.sot_sequence
        self._first_timestamp = self._tokenizer.timestamp_begin
        self.log_mel = LogMel(self._model.n_mels)

    def encode(self, log_power: Features) -> Encoded:
        """The encoder over log power [n_frames, bands], 30 s at most; the cost is that of these frames."""
        return self._model.encode(ctranslate2.StorageView.from_array(normalise(log_power)))

    def decode(self, encoded: Encoded, forced: Sequence[int], limit: int) -> list[DecodedSegment]:
        """Greedy text that goes on after the `forced` tokens: `limit` new tokens at most, theirs left out.

        Timestamps stay on: without them the decoder often says a short utterance again and again until the
        limit; with them a repetition shows as a segment that begins after the speech has ended.
        """
        prefix = [self._first_timestamp, *forced]
        new_tokens = len(prefix) + limit  # CTranslate2 counts forced text as generated
        result = self._model.generate(
            encoded,
            [[*self._start, *prefix]],
            beam_size=1,
            # CTranslate2 generates min(max_length / 2, max_length - length of the start sequence).
            max_length=min(_DECODER_POSITIONS, max(2 * new_tokens, new_tokens + len(self._start))),
            suppress_blank=not forced,  # an immediate end is a right answer only after some text
        )[0]
        return self._segments(_after(result.sequences_ids[0], prefix))

    def _segments(self, ids: Sequence[int]) -> list[DecodedSegment]:
        segments: list[DecodedSegment] = []
        start, text = 0.0, list[int]()
        for token in ids:
            if token < self._tokenizer.eot:
                text.append(token)
            elif token >= self._first_timestamp:
                time = (token - self._first_timestamp) * 0.02
                if text:
                    segments.append(DecodedSegment(start, time, tuple(text)))
                start, text = time, []
        if text:
            segments.append(DecodedSegment(start, None, tuple(text)))
        return segments

    def align(self, encoded: Encoded, ids: Sequence[int], frames: int) -> list[Token]:
        """Where each of the text's tokens lies within the first `frames` frames, and how probable it is."""
        if not ids:
            return []
        result = self._model.align(encoded, self._start, [list(ids)], frames)[0]
        text_index, time_index = np.array(result.alignments).T
        first = np.flatnonzero(np.diff(text_index, prepend=-1))
        times = (time_index[first] * 2 / FRAMES_PER_SECOND).tolist()
        return [
            Token(*token) for token in zip(ids, times[:-1], times[1:], result.text_token_probs, strict=True)
        ]

    def words(self, ids: Sequence[int]) -> list[tuple[str, int]]:
        """The text's words, each with its leading space and closing punctuation, and its number of tokens."""
        words: list[tuple[str, int]] = []
        for text, tokens in zip(*self._tokenizer.split_to_word_tokens(list(ids)), strict=True):
            punctuation = not any(character.isalnum() for character in text)
            if words and (punctuation or (self._spaced and not text.startswith(" "))):
                words[-1] = (words[-1][0] + text, words[-1][1] + len(tokens))
            else:
                words.append((text, len(tokens)))
        return words

    def closing(self, ids: Sequence[int]) -> list[int]:
        """The tokens of the punctuation that closes the text."""
        count = 0
        while count < len(ids) and not any(c.isalnum() for c in self._tokenizer.decode([ids[-1 - count]])):
            count += 1
        return list(ids[len(ids) - count :])

    def ids(self, text: str) -> list[int]:
        """The text's tokens; a word in the middle of speech begins with its space."""
        ids: list[int] = []
        for token in self._tokenizer.encode(text):
            # Published vocabularies lack the merge of a space with "t", which the model itself writes as one.
            spaced = self._vocabulary.token_to_id("Ġ" + (self._vocabulary.id_to_token(token) or ""))
            if ids and ids[-1] == self._space and spaced is not None:
                ids[-1] = spaced
            else:
                ids.append(token)
        return ids


def _after(ids: Sequence[int], prefix: Sequence[int]) -> Sequence[int]:
    """The generated ids without the forced ones, which CTranslate2 gives back too."""
    return ids[len(prefix) :] if list(ids[: len(prefix)]) == list(prefix) else ids
