"""Hotwords correct what sounds like them and never appear where nobody said them."""

from __future__ import annotations

import pytest

from asr.hotwords import Hotwords
from asr.recogniser import Recogniser
from fixtures.recordings import Recording


def never() -> bool:
    return False


def characters(text: str) -> list[int]:
    return [ord(character) for character in text]


@pytest.mark.parametrize(
    ("hotword", "said", "place"),
    [
        ("Alvarez", "call doctor alvares please", (2, 3)),
        ("Kaitlyn", "ask Kightlin about it", (1, 2)),
        ("Brightwater", "the bright water clinic", (1, 3)),
        ("Siobhan Kelly", "with shivaun kelly today", (1, 3)),
        ("Invisalign", "does Envisalign, work", (1, 2)),
        ("Alvarez", "ask Alvarez, please", None),
        ("Ann", "", None),
        ("Dr", "doctor who", None),
    ],
)
def test_what_sounds_alike_is_found(hotword: str, said: str, place: tuple[int, int] | None) -> None:
    found = Hotwords([hotword], characters).alike([f" {word}" for word in said.split()])
    assert [(alike.first, alike.last) for alike in found] == ([place] if place else [])


def test_a_refused_reading_is_not_asked_again() -> None:
    hotwords, words = Hotwords(["Alvarez"], characters), [" ask", " alvares"]
    (alike,) = hotwords.alike(words)
    hotwords.refuse(words, alike)
    assert hotwords.alike(words) == []


def test_a_phrase_that_counts_alone_is_not_looked_for_in_longer_text() -> None:
    hotwords = Hotwords([], characters, alone=["Got it"])
    assert [alike.text for alike in hotwords.alike([" add", " it."])] == ["Got it"]
    assert hotwords.alike([" add", " it", " now."]) == []


def test_places_come_from_the_last_to_the_first_and_do_not_overlap() -> None:
    words = [" alvares", " and", " kightlin", " kaitlin"]
    found = Hotwords(["Kaitlyn", "Alvarez"], characters).alike(words)
    assert [alike.first for alike in found] == [3, 2, 0]


def test_a_name_is_written_as_it_is_known(recogniser: Recogniser, sentences: list[Recording]) -> None:
    utterance = recogniser.open(hotwords=["ill-disposed"])
    utterance.feed(sentences[1].audio)
    assert utterance.finish(never).text == "He was not an ill-disposed young man."


def test_what_nobody_said_is_not_written(recogniser: Recogniser, sentences: list[Recording]) -> None:
    hotwords = ["Alvarez", "Rejoinder", "Anne", "Jung", "Ill Disposal", "Mary", "Maryland", "Amy Abel"]
    texts = []
    for known in ((), hotwords):
        utterance = recogniser.open(hotwords=known)
        utterance.feed(sentences[3].audio)
        texts.append(utterance.finish(never).text)
    assert texts[0] == texts[1]
