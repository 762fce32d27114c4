"""The gap after a unit of speech, decided by the mark that ends it.

The gap is the end of the unit's own audio: whoever plays units one after another needs no clock for it, and
the last unit of a reply ends in silence that nobody notices.
"""

from __future__ import annotations

import re

PARAGRAPH, SENTENCE, CLAUSE, NONE = 0.65, 0.35, 0.18, 0.04
"""Seconds of silence after a paragraph, a sentence, a clause, and a unit cut between words."""

CLOSERS = "\"'”’»)]}*_`"
SENTENCE_MARKS = ".!?…。！？؟।"
CLAUSE_MARKS = ",;:—–-、，；："


def gap_after(text: str) -> float:
    """Seconds of silence that belong after `text`, a unit as it was written with its trailing white space."""
    body = text.rstrip()
    if re.search(r"\n\s*\n\s*$", text[len(body) :]):
        return PARAGRAPH
    last = body.rstrip(CLOSERS)[-1:]
    if (last and last in SENTENCE_MARKS) or "\n" in text[len(body) :]:
        return SENTENCE
    return CLAUSE if last and last in CLAUSE_MARKS else NONE
