"""What callers do to a recogniser: short turns, corrections, hesitations, long talk, bad lines, no speech.

Speech is recorded (one reader) or spoken by the embedded voice.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from asr.audio import Audio
from asr.recogniser import LONG_WINDOW, Recogniser, Word
from asr.vad import SileroVad
from fixtures import lines, noises
from fixtures.recordings import Recording
from fixtures.speech import RATE, caller_voice, silence, speak
from fixtures.words import plain, word_error_rate, words_wrong
from tests.asr.test_recogniser import listen, never
from tests.models import path

Say = Callable[[str], Audio]


@pytest.fixture(scope="module")
def say() -> Say:
    voice = caller_voice("hibari")
    return lambda text: speak(voice, text)


@pytest.fixture(scope="module")
def quick_recogniser(vad: SileroVad) -> Recogniser:
    """A smaller model for what takes long: the window and the commits are the same."""
    return Recogniser(path("whisper-tiny.en"), vad=vad)


def heard(recogniser: Recogniser, *parts: Audio) -> str:
    """The transcript of the parts, listened to as they come; checks that nothing is taken back."""
    utterance = recogniser.open()
    committed = listen(utterance, np.concatenate([silence(0.3), *parts, silence(0.3)]))
    transcript = utterance.finish(never)
    assert transcript.words[: len(committed)] == committed
    return transcript.text


@pytest.mark.parametrize(
    "word", ["Yes.", "No.", "Hello?", "Tuesday.", "Thanks.", "Okay.", "Seven.", "Goodbye."]
)
def test_a_turn_of_one_word_is_that_word(recogniser: Recogniser, say: Say, word: str) -> None:
    assert plain(heard(recogniser, say(word))) in (plain(word), "good bye")


def test_a_correction_is_kept_with_what_it_corrects(recogniser: Recogniser, say: Say) -> None:
    text = heard(recogniser, say("Monday,"), silence(0.4), say("no, Tuesday."))
    assert plain(text) == "monday no tuesday"


@pytest.mark.parametrize("pause", [0.25, 0.9, 2.5])
def test_a_hesitation_within_a_sentence_loses_no_word(recogniser: Recogniser, say: Say, pause: float) -> None:
    text = heard(recogniser, say("I would like to book"), silence(pause), say("a table for four people."))
    assert plain(text) == plain("I would like to book a table for four people.")


def test_going_on_after_the_final_pass_takes_no_committed_word_back(recogniser: Recogniser, say: Say) -> None:
    """The caller is asked for a number and gives it in groups; each pause looks like the end."""
    utterance = recogniser.open()
    committed, text = (), ""
    for group in ("My number is five five five,", "two one seven,", "nine four three eight."):
        utterance.feed(np.concatenate([silence(0.3), say(group), silence(0.3)]))
        text = utterance.finish(never).text
        partial = utterance.step(never)
        assert partial.settled[: len(committed)] == committed
        committed = partial.settled
    digits = re.sub(r"\D", "", text)
    assert digits == "5552179438"


def test_two_minutes_of_talk_are_heard_in_a_short_window(
    quick_recogniser: Recogniser, sentences: list[Recording]
) -> None:
    said = [sentences[turn % len(sentences)] for turn in range(22)]
    talk = np.concatenate([part for sentence in said for part in (sentence.audio, silence(0.4))])
    assert len(talk) > 115 * RATE
    utterance = quick_recogniser.open()
    committed: tuple[Word, ...] = ()
    for start in range(0, len(talk), 4 * RATE):
        utterance.feed(talk[start : start + 4 * RATE])
        partial = utterance.step(never)
        assert partial.settled[: len(committed)] == committed
        committed = partial.settled
        assert utterance._window.end - utterance._window.start < LONG_WINDOW + 4.0
    transcript = utterance.finish(never)
    assert transcript.words[: len(committed)] == committed
    truth = " ".join(sentence.text for sentence in said)
    assert word_error_rate(truth, transcript.text) < 0.12


NOISES: dict[str, Callable[[noises.Random], Audio]] = {
    "nothing": lambda random: silence(3.0),
    "hiss": noises.hiss,
    "hum": noises.hum,
    "fan": noises.fan,
    "vowel": noises.vowel,
    "hold music": lambda random: noises.hold_music(random, 8.0),
    "coughs": noises.coughs,
    "a worn line": noises.worn_line,
}


@pytest.mark.parametrize("name", NOISES)
def test_no_word_is_made_up(recogniser: Recogniser, name: str) -> None:
    assert heard(recogniser, NOISES[name](np.random.default_rng(1))) == ""


def words_wrong_on(
    recogniser: Recogniser, recordings: list[Recording], spoil: Callable[[Audio], Audio]
) -> int:
    wrong = 0
    for recording in recordings:
        utterance = recogniser.open()
        utterance.feed(np.concatenate([silence(0.3), spoil(recording.audio), silence(0.3)]))
        wrong += words_wrong(recording.text, utterance.finish(never).text)
    return wrong


@pytest.fixture(scope="module")
def wrong_on_a_good_line(recogniser: Recogniser, sentences: list[Recording]) -> int:
    return words_wrong_on(recogniser, sentences, lambda audio: audio)


@pytest.mark.parametrize(
    "spoil", [lines.clipped, lines.offset, lines.packets_lost, lines.broken, lines.noisy]
)
def test_a_bad_line_costs_few_words(
    recogniser: Recogniser,
    sentences: list[Recording],
    wrong_on_a_good_line: int,
    spoil: Callable[[Audio], Audio],
) -> None:
    """One in twenty more than on a good line: three of seventy. Rounding on one processor or another moves a
    word on either line."""
    words = sum(len(plain(sentence.text).split()) for sentence in sentences)
    assert words_wrong_on(recogniser, sentences, spoil) <= wrong_on_a_good_line + words // 20


def test_speech_after_music_is_heard_without_it(recogniser: Recogniser, say: Say) -> None:
    music = noises.hold_music(np.random.default_rng(1), 8.0)
    text = heard(recogniser, music, silence(0.5), say("Are you open on Sunday?"))
    assert plain(text) == "are you open on sunday"
