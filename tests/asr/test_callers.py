"""What callers do to a recogniser: short turns, corrections, hesitations, long talk, bad lines, no speech.

Speech is recorded (one reader) or spoken by the embedded voice; noises are made here.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import jiwer
import numpy as np
import pytest

from asr.audio import Audio
from asr.recogniser import LONG_WINDOW, Recogniser, Word
from asr.vad import SileroVad
from bench.questions import caller_voice, speak
from tests.asr.conftest import RATE, Recording, silence
from tests.asr.test_recogniser import listen, never, plain
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
    assert plain(heard(recogniser, say(word))).replace("7", "seven") in (plain(word), "good bye")


def test_a_correction_is_kept_with_what_it_corrects(recogniser: Recogniser, say: Say) -> None:
    text = heard(recogniser, say("Monday,"), silence(0.4), say("no, Tuesday."))
    assert plain(text) == "monday no tuesday"


@pytest.mark.parametrize("pause", [0.25, 0.9, 2.5])
def test_a_hesitation_within_a_sentence_loses_no_word(recogniser: Recogniser, say: Say, pause: float) -> None:
    text = heard(recogniser, say("I would like to book"), silence(pause), say("a table for four people."))
    assert plain(text).replace("4", "four") == "i would like to book a table for four people"


def test_going_on_after_the_final_pass_takes_no_committed_word_back(recogniser: Recogniser, say: Say) -> None:
    """The caller is asked for a number and gives it in groups; each pause looks like the end."""
    utterance = recogniser.open()
    committed, text = (), ""
    for group in ("My number is five five five,", "two one seven,", "nine four three eight."):
        utterance.feed(np.concatenate([silence(0.3), say(group), silence(0.3)]))
        text = utterance.finish(never).text
        partial = utterance.step(never)
        assert partial.committed[: len(committed)] == committed
        committed = partial.committed
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
        assert partial.committed[: len(committed)] == committed
        committed = partial.committed
        assert utterance._window.end - utterance._window.start < LONG_WINDOW + 4.0
    transcript = utterance.finish(never)
    assert transcript.words[: len(committed)] == committed
    truth = " ".join(sentence.text for sentence in said)
    assert jiwer.wer(plain(truth), plain(transcript.text)) < 0.12


def nothing() -> Audio:
    """A silent line."""
    return silence(3.0)


def hiss() -> Audio:
    """Loud white noise."""
    return (0.2 * np.random.default_rng(10).standard_normal(3 * RATE)).astype(np.float32)


def vowel() -> Audio:
    """A short hum like a voice's: pulses, 90 a second, through two formants."""
    time = np.arange(RATE) / RATE
    pulses = np.diff(np.floor(90 * time), prepend=0)
    for formant in (500, 900):
        rings = 0.97 ** np.arange(400) * np.cos(2 * np.pi * formant / RATE * np.arange(400))
        pulses = np.convolve(pulses, rings)[: len(time)]
    hum = pulses / np.abs(pulses).max() * np.exp(-15 * np.maximum(time - 0.2, 0))
    return (0.5 * hum).astype(np.float32)


def hold_music() -> Audio:
    """Chords with a beat and a melody over them, eight seconds."""
    time = np.arange(8 * RATE) / RATE
    chords = ((220.0, 277.2, 329.6), (196.0, 246.9, 293.7), (174.6, 220.0, 261.6), (196.0, 246.9, 392.0))
    melody = (659.3, 587.3, 523.3, 587.3, 659.3, 659.3, 659.3, 0.0)
    bar, beat = (time // 2).astype(int) % 4, (time // 0.5).astype(int) % 8
    harmony = sum(np.sin(2 * np.pi * np.array(note)[bar] * time) for note in zip(*chords, strict=True))
    lead = np.sin(2 * np.pi * np.array(melody)[beat] * time) * np.exp(-3 * (time % 0.5))
    return (0.08 * harmony + 0.2 * lead).astype(np.float32)


def coughs() -> Audio:
    """Bursts of low noise with a sharp start, 300 ms long, one every 1.5 s."""
    time = np.arange(6 * RATE) / RATE
    noise = np.random.default_rng(11).standard_normal(len(time))
    low = np.convolve(noise, np.hanning(24) / 12, mode="same")
    return (0.4 * low * np.exp(-12 * (time % 1.5))).astype(np.float32)


def clicks() -> Audio:
    """A worn line: single samples at full scale, ten a second."""
    audio = silence(5.0)
    audio[np.random.default_rng(12).integers(0, len(audio), 50)] = 1.0
    return audio


def hum() -> Audio:
    """Mains hum with its harmonics, and hiss."""
    time = np.arange(5 * RATE) / RATE
    waves = sum(0.2 / n * np.sin(2 * np.pi * 50 * n * time) for n in (1, 2, 3, 5))
    return (waves + 0.02 * np.random.default_rng(13).standard_normal(len(time))).astype(np.float32)


@pytest.mark.parametrize("noise", [nothing, hiss, hum, vowel, hold_music, coughs, clicks])
def test_no_word_is_made_up(recogniser: Recogniser, noise: Callable[[], Audio]) -> None:
    assert heard(recogniser, noise()) == ""


def clipped(audio: Audio) -> Audio:
    return np.clip(audio * np.float32(8), -0.5, 0.5)


def offset(audio: Audio) -> Audio:
    return audio * np.float32(0.5) + np.float32(0.2)


def lossy(audio: Audio) -> Audio:
    """One packet of 20 ms in a hundred is silence."""
    packets = audio[: len(audio) // 320 * 320].reshape(-1, 320).copy()
    packets[np.random.default_rng(14).random(len(packets)) < 0.01] = 0.0
    return packets.reshape(-1)


def broken(audio: Audio) -> Audio:
    """Samples that are no numbers."""
    audio = audio.copy()
    audio[::4000] = np.nan
    return audio


def noisy(audio: Audio) -> Audio:
    """White noise 20 dB under the speech."""
    level = np.sqrt(np.mean(np.square(audio))) * 10 ** (-20 / 20)
    return audio + (level * np.random.default_rng(15).standard_normal(len(audio))).astype(np.float32)


def words_wrong(recogniser: Recogniser, recordings: list[Recording], spoil: Callable[[Audio], Audio]) -> int:
    wrong = 0
    for recording in recordings:
        utterance = recogniser.open()
        utterance.feed(np.concatenate([silence(0.3), spoil(recording.audio), silence(0.3)]))
        found = jiwer.process_words(plain(recording.text), plain(utterance.finish(never).text))
        wrong += found.substitutions + found.deletions + found.insertions
    return wrong


@pytest.fixture(scope="module")
def wrong_on_a_good_line(recogniser: Recogniser, sentences: list[Recording]) -> int:
    return words_wrong(recogniser, sentences, lambda audio: audio)


@pytest.mark.parametrize("spoil", [clipped, offset, lossy, broken, noisy])
def test_a_bad_line_costs_few_words(
    recogniser: Recogniser,
    sentences: list[Recording],
    wrong_on_a_good_line: int,
    spoil: Callable[[Audio], Audio],
) -> None:
    """One in twenty more than on a good line: three of seventy. Rounding on one processor or another moves a
    word on either line."""
    words = sum(len(plain(sentence.text).split()) for sentence in sentences)
    assert words_wrong(recogniser, sentences, spoil) <= wrong_on_a_good_line + words // 20


def test_speech_after_music_is_heard_without_it(recogniser: Recogniser, say: Say) -> None:
    assert plain(heard(recogniser, hold_music(), silence(0.5), say("Are you open on Sunday?"))) == (
        "are you open on sunday"
    )
