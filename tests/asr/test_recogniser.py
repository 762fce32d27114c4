"""The streaming recogniser with the real model on real speech."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from asr.audio import Audio
from asr.recogniser import Recogniser, Transcript, Utterance, Word
from asr.stability import LocalAgreement
from fixtures.recordings import Recording
from fixtures.speech import RATE, silence
from fixtures.words import plain, word_error_rate
from tests.models import path


def never() -> bool:
    return False


def listen(utterance: Utterance, audio: Audio, step_seconds: float = 1.0) -> tuple[Word, ...]:
    """Feeds the audio in 20 ms packets with a step every so often; checks that nothing is taken back."""
    committed: tuple[Word, ...] = ()
    for start in range(0, len(audio), round(step_seconds * RATE)):
        for packet in np.split(audio[start : start + round(step_seconds * RATE)], range(320, 16_000, 320)):
            utterance.feed(packet)
        partial = utterance.step(never)
        assert partial.settled[: len(committed)] == committed
        committed = partial.settled
    return committed


@pytest.fixture(scope="module")
def heard(recogniser: Recogniser, sentences: list[Recording]) -> tuple[tuple[Word, ...], Transcript]:
    """The first two sentences in one turn, with half a second between."""
    utterance = recogniser.open()
    audio = np.concatenate([sentences[0].audio, silence(0.5), sentences[1].audio, silence(0.2)])
    return listen(utterance, audio), utterance.finish(never)


def test_the_words_are_right(heard: tuple[tuple[Word, ...], Transcript], sentences: list[Recording]) -> None:
    """Nine of ten. The model's own mistakes are one of thirty; rounding may add another."""
    truth = f"{sentences[0].text} {sentences[1].text}"
    assert word_error_rate(truth, heard[1].text) <= 0.1


def test_committed_words_open_the_transcript(heard: tuple[tuple[Word, ...], Transcript]) -> None:
    committed, transcript = heard
    assert len(committed) >= 15
    assert transcript.words[: len(committed)] == committed
    assert "".join(word.text for word in transcript.words).strip() == transcript.text


def test_words_have_their_times_and_confidence(heard: tuple[tuple[Word, ...], Transcript]) -> None:
    words = heard[1].words
    assert all(word.start <= word.end for word in words)
    assert all(before.start <= after.start for before, after in pairwise(words))
    assert words[0].start < 0.8
    assert 9.0 < words[-1].end < heard[1].audio_seconds
    assert np.mean([word.probability for word in words]) > 0.7


def test_finish_twice_costs_one_pass_and_going_on_is_heard(
    recogniser: Recogniser, sentences: list[Recording], monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = []
    encode = recogniser._whisper.encode
    monkeypatch.setattr(recogniser._whisper, "encode", lambda rows: passes.append(len(rows)) or encode(rows))
    utterance = recogniser.open()
    utterance.feed(np.concatenate([sentences[1].audio, silence(0.2)]))
    first = utterance.finish(never)
    utterance.feed(silence(0.4))
    second = utterance.finish(never)
    assert len(passes) == 1
    assert second.words == first.words
    assert second.audio_seconds > first.audio_seconds
    utterance.feed(sentences[4].audio)
    assert plain(utterance.finish(never).text).endswith("amiable himself")


def test_a_minute_fed_at_once_is_heard_whole(recogniser: Recogniser, sentences: list[Recording]) -> None:
    utterance = recogniser.open()
    utterance.feed(np.concatenate([part for s in 2 * sentences for part in (s.audio, silence(0.3))]))
    truth = plain(" ".join(sentence.text for sentence in 2 * sentences))
    assert word_error_rate(truth, utterance.finish(never).text) < 0.1


def test_local_agreement_is_the_other_policy(sentences: list[Recording]) -> None:
    recogniser = Recogniser(path("whisper-tiny.en"), policy=LocalAgreement)
    utterance = recogniser.open()
    committed = listen(utterance, np.concatenate([sentences[0].audio, silence(0.2)]))
    assert len(committed) >= 5
    assert word_error_rate(sentences[0].text, utterance.finish(never).text) < 0.2


def test_an_utterance_without_audio_is_empty(recogniser: Recogniser) -> None:
    utterance = recogniser.open()
    utterance.feed(silence(0.0))
    utterance.feed(np.zeros(1, np.float32))
    assert utterance.step(never).settled == ()
    assert utterance.finish(never) == Transcript("", (), 1 / RATE)


def test_cancelled_passes_tell_what_was_known(recogniser: Recogniser, sentences: list[Recording]) -> None:
    utterance = recogniser.open()
    utterance.feed(sentences[1].audio)
    assert utterance.finish(lambda: True).text == ""
    assert plain(utterance.finish(never).text).startswith("he was not")


def test_steps_are_due_by_new_audio_and_by_what_the_last_one_cost(sentences: list[Recording]) -> None:
    ticks = iter(np.arange(100, dtype=float))
    recogniser = Recogniser(path("whisper-tiny.en"), clock=lambda: float(next(ticks)))  # a pass takes 1 s
    utterance = recogniser.open()
    utterance.feed(sentences[0].audio[:RATE])
    assert utterance.due
    utterance.step(never)
    assert not utterance.due
    utterance.feed(sentences[0].audio[RATE : 3 * RATE])
    assert not utterance.due
    utterance.feed(sentences[0].audio[3 * RATE : 4 * RATE])
    assert utterance.due


def test_a_missing_model_or_language_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"model\.bin"):
        Recogniser(tmp_path)
    with pytest.raises(ValueError, match="English only"):
        Recogniser(path("whisper-tiny.en"), language="de")


@pytest.mark.parametrize(
    ("seconds", "text", "low", "high"),
    [
        (7.1, "to do for them.", 0.7, 1.0),
        (5.8, "prudently in his", 0.0, 0.0),
        (3.5, "consider how", 0.0, 0.0),
    ],
)
def test_the_closing_mark_and_its_probability_are_those_of_an_end(
    recogniser: Recogniser, sentences: list[Recording], seconds: float, text: str, low: float, high: float
) -> None:
    utterance = recogniser.open()
    utterance.feed(np.concatenate([sentences[0].audio[: round(seconds * RATE)], silence(0.2)]))
    transcript = utterance.finish(never)
    assert transcript.text.endswith(text)
    assert transcript.closing is not None
    assert low <= transcript.closing <= high


def test_nothing_said_has_no_closing_mark(recogniser: Recogniser) -> None:
    assert recogniser.open().finish(never).closing is None
