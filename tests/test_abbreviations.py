"""The English abbreviations of the sentence stream and of the voices: each has the other's, or a reason."""

import pytest

from llm.sentences import SentenceStream
from llm.sentences.abbreviations import ENGLISH
from tts.speakable import speakable
from tts.text.abbreviation_words import BEFORE_NAMES, BEFORE_NUMBERS, STATES, STREETS, WITH_STOP

_SENTENCES = ENGLISH.titles | ENGLISH.never | ENGLISH.may_end | ENGLISH.capitalised | ENGLISH.numbered
_SPOKEN = {word.lower() for table in (BEFORE_NAMES, STREETS, WITH_STOP, STATES) for word in table}
_FOR_SENTENCES_ONLY = {
    "letters, said one by one": ("llc", "plc", "phd", "eg", "ie", "n", "v"),
    "words of their own, or of several meanings": (
        "in",
        "ind",
        "mo",
        "pop",
        "pt",
        "vac",
        "circa",
        "para",
        "ex",
        "op",
        "cit",
    ),
    "rare in speech, and plain as they are written": ("eqs", "snr", "sra", "vols", "mg"),
}
"""Abbreviations that the voices say as they are written, and why."""
_AS_WRITTEN = {word for words in _FOR_SENTENCES_ONLY.values() for word in words}


def _in_use(word: str) -> list[str]:
    """Texts in which an abbreviation means what it stands for."""
    capital = word.capitalize()
    return [
        f"The {word}. one",
        f"It is 5 {word}. or so",
        f"See {word}. 5 of it",
        f"On {capital}. 5 it was",
        f"On {capital}. at noon",
        f"Go {word} it",
    ]


@pytest.mark.parametrize("word", sorted(_SPOKEN | BEFORE_NUMBERS.keys()))
def test_no_sentence_ends_behind_what_a_voice_says_in_full(word: str) -> None:
    assert word in _SENTENCES
    texts = [f"On Elm {word.capitalize()}. it is"] if word in _SPOKEN else []
    texts += [f"Take {word}. 5 of it"] if word in BEFORE_NUMBERS else []
    texts += [f"The {word}. is here"] if word in WITH_STOP else []
    for text in texts:
        stream = SentenceStream()
        assert stream.push(text) + stream.flush() == [text]


@pytest.mark.parametrize("word", sorted(word for word in _SENTENCES if "." not in word.rstrip(".")))
def test_what_the_sentences_know_is_said_in_full(word: str) -> None:
    bare = word.rstrip(".")
    full = bare in _SPOKEN or any(
        bare not in speakable(text).text.lower().replace(".", "").split() for text in _in_use(bare)
    )
    assert full != (bare in _AS_WRITTEN)
