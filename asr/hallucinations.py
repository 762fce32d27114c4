"""Finds Whisper's hallucinations: text after the end of the speech, repetitions, stock phrases for noise.

Confidence does not show a repetition (it is decoded with high confidence), so most of these ask the
audio: does the voice last long enough for the text, and does each word have a place in it?
"""

from __future__ import annotations

from collections.abc import Sequence

from asr.whisper import DecodedSegment, Token

MIN_VOICE_SECONDS = 0.1
TOKENS_PER_SECOND = 8.0  # fast speech has 6
SPARE_TOKENS = 8  # closing punctuation, timestamps, a short word

_PLACELESS_SECONDS = 0.02
_PLACELESS_TOKENS = 4

# What Whisper's training data (subtitles) taught it to write under noise and music.
_STOCK_PHRASES = frozenset(
    {
        *(
            "you",
            "thank you",
            "thanks for watching",
            "thank you for watching",
            "thank you so much for watching",
        ),
        *("bye", "bye bye", "the end", "please subscribe", "music", "applause", "so", "oh", "uh", "okay"),
    }
)
_DOUBTFUL = 0.33  # "Okay." alone, clearly said, has 0.38
_HOPELESS = (
    0.2  # hums, coughs and speech played backwards stay under 0.17, single words said clearly over 0.25
)


def token_limit(seconds: float) -> int:
    """The most tokens that this much speech can hold."""
    return SPARE_TOKENS + int(TOKENS_PER_SECOND * max(0.0, seconds))


def spoken(segments: Sequence[DecodedSegment], voice_end: float) -> list[int]:
    """The text of the segments that begin while there is still voice; the first goes on from earlier text."""
    ids: list[int] = []
    for index, segment in enumerate(segments):
        if index and segment.start > voice_end - MIN_VOICE_SECONDS:
            break
        ids.extend(segment.ids)
    return ids


def placed(tokens: Sequence[Token]) -> int:
    """How many of the tokens come before a run that has no place in the audio: the start of a repetition."""
    run = 0
    for index, token in enumerate(tokens):
        run = run + 1 if token.end - token.start < _PLACELESS_SECONDS else 0
        if run == _PLACELESS_TOKENS:
            return index + 1 - run
    return len(tokens)


def is_hallucination(text: str, probability: float, voice_seconds: float) -> bool:
    """Whether the hypothesis is what Whisper writes for noise. `probability`: the mean of its words'."""
    plain = "".join(c for c in text.lower() if c.isalnum() or c == " ").strip()
    if not plain or voice_seconds < MIN_VOICE_SECONDS or probability < _HOPELESS:
        return True
    return plain in _STOCK_PHRASES and probability < _DOUBTFUL
