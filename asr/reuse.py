"""Reuse of the last pass's text: where the whole of it still holds, nothing is decoded.

A pass that follows another within a fraction of a second, as the one at the end of speech does, often hears
only the rest of a word that the last pass had already guessed. Speculative decoding (Leviathan et al.,
2211.17192) checks a draft in one forward pass instead of a step for each token, and the alignment, which
every text gets anyway, is such a pass. It is all or nothing: CTranslate2 takes as long for a token that is
forced as for one that is found (its issue 1509), so keeping the beginning of a text would save nothing.

It is a heuristic, if a strict one: the alignment weighs text tokens alone and sees no timestamps, so it is
not the decoder itself. The limits below were chosen on recordings where the two were compared.
"""

from __future__ import annotations

from collections.abc import Sequence

from asr import hallucinations
from asr.whisper import Token

LONGEST_GROWTH = 0.45
"""Seconds of new voice. With 0.6 most texts lack a word."""

_LEAST_WORD, _LEAST_MARK = 0.3, 0.5  # texts with a less likely word or mark than this hardly ever hold
_HELD_WORD = 0.5  # more than half of the probability: nothing else can have more
_HELD_MARK = 0.7
_UNEXPLAINED_SECONDS = 0.1  # 0.04 at most where the text was right; mostly over 0.25 where a word followed
_MARK_SECONDS = 0.4  # from the last word on: at most that where it was right, 0.46 and more where not


def worth_checking(tokens: Sequence[Token], marks: int, growth: float) -> bool:
    """May the text hold with `growth` seconds more of voice? `tokens`: as the last pass aligned them.

    `marks`: how many of them are the closing punctuation. Text without any is never reused: the alignment
    tells what is said next, not that nothing is, so it needs a mark that a further word would have displaced.
    """
    return (
        0 < marks < len(tokens)
        and growth <= LONGEST_GROWTH
        and _likely(tokens, marks, _LEAST_WORD, _LEAST_MARK)
    )


def still_holds(tokens: Sequence[Token], marks: int, voice_end: float) -> bool:
    """Would it be decoded again? `tokens`: aligned with audio whose voice ends at `voice_end` seconds.

    Probable words are not enough: after a whole sentence, a short one ("Bye.") leaves the first as probable
    as it was. So the text must also reach to the end of the voice, and not by a mark that is drawn out.
    """
    return (
        _likely(tokens, marks, _HELD_WORD, _HELD_MARK)
        and voice_end - tokens[-1].end <= _UNEXPLAINED_SECONDS
        and voice_end - tokens[-marks].start <= _MARK_SECONDS
        and hallucinations.placed(tokens) == len(tokens)
    )


def _likely(tokens: Sequence[Token], marks: int, word: float, mark: float) -> bool:
    return all(token.probability > word for token in tokens[:-marks]) and all(
        token.probability > mark for token in tokens[-marks:]
    )
