"""A pass's text is kept by the next one without decoding where the audio confirms it, and only there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from asr import reuse
from asr.hotwords import Hotwords
from asr.recogniser import Recogniser, Utterance
from asr.stability import AlignmentPolicy
from asr.whisper import DecodedSegment, Token
from fixtures.recordings import Recording
from fixtures.speech import RATE, silence

MARK = 9
WORDS = {1: " ask", 2: " alvares", 3: " please", 4: " Alvarez"}


def never() -> bool:
    return False


def aligned(probabilities: Sequence[float], end: float, ids: Sequence[int] = ()) -> list[Token]:
    """Tokens of 0.2 s each up to `end`; the last is the mark."""
    count = len(probabilities)
    ids = ids or [*range(1, count), MARK]
    return [
        Token(id, round(end - 0.2 * (count - n), 2), round(end - 0.2 * (count - n - 1), 2), probability)
        for n, (id, probability) in enumerate(zip(ids, probabilities, strict=True))
    ]


@pytest.mark.parametrize(
    ("probabilities", "marks", "growth", "worth_it"),
    [
        ([0.9, 0.9, 0.9], 1, 0.3, True),
        ([0.9, 0.4, 0.6], 1, 0.3, True),
        ([0.9, 0.9, 0.9], 1, 0.6, False),
        ([0.9, 0.2, 0.9], 1, 0.3, False),
        ([0.9, 0.9, 0.4], 1, 0.3, False),
        ([0.9, 0.9, 0.9], 0, 0.3, False),
        ([0.9], 1, 0.3, False),
    ],
)
def test_only_likely_text_with_a_mark_and_little_new_voice_is_worth_a_try(
    probabilities: list[float], marks: int, growth: float, worth_it: bool
) -> None:
    assert reuse.worth_checking(aligned(probabilities, 2.0), marks, growth) is worth_it


def test_a_text_holds_where_every_token_is_the_likeliest_and_reaches_the_end_of_the_voice() -> None:
    tokens = aligned([0.9, 0.6, 0.8], 2.0)
    assert reuse.still_holds(tokens, 1, 2.02)
    assert not reuse.still_holds(aligned([0.9, 0.45, 0.8], 2.0), 1, 2.02)
    assert not reuse.still_holds(aligned([0.9, 0.9, 0.65], 2.0), 1, 2.02)


def test_a_word_after_the_text_shows_as_voice_without_text_or_as_a_long_mark() -> None:
    tokens = aligned([0.9, 0.9, 0.9], 2.0)
    assert not reuse.still_holds(tokens, 1, 2.3)
    assert not reuse.still_holds([*tokens[:-1], replace(tokens[-1], end=2.3)], 1, 2.32)


def test_a_text_without_a_place_in_the_audio_does_not_hold() -> None:
    looped = [Token(1, 1.9, 1.9, 0.99)] * 5
    assert not reuse.still_holds([*looped, Token(MARK, 1.9, 2.0, 0.9)], 1, 2.0)


@dataclass
class ScriptedWhisper:
    """Each decoding gives the next of `texts`; `probabilities` are those of each alignment that says."""

    texts: list[tuple[int, ...]]
    probabilities: dict[tuple[int, ...], list[list[float]]] = field(default_factory=dict)
    decoded: int = 0

    def encode(self, log_power: Any) -> None: ...

    def decode(self, encoded: None, forced: Sequence[int], limit: int) -> list[DecodedSegment]:
        self.decoded += 1
        return [DecodedSegment(0.0, None, self.texts[self.decoded - 1])]

    def align(self, encoded: None, ids: Sequence[int], frames: int) -> list[Token]:
        planned = self.probabilities.get(tuple(ids))
        return aligned(planned.pop(0) if planned else [0.9] * len(ids), frames / 100, ids)

    def words(self, ids: Sequence[int]) -> list[tuple[str, int]]:
        words = [(WORDS[id], 1) for id in ids if id != MARK]
        return [*words[:-1], (words[-1][0] + ".", 2)] if ids[-1] == MARK else words

    def closing(self, ids: Sequence[int]) -> list[int]:
        return [MARK] if ids and ids[-1] == MARK else []


def utterance(whisper: ScriptedWhisper, *, hotwords: Hotwords | None = None) -> tuple[Utterance, Any]:
    """An utterance whose passes are scripted, with the window that says how far the voice goes."""
    window = SimpleNamespace(
        start=0.0, end=2.0, voice_start=0.2, voice_end=2.0, features=lambda padding: None
    )
    policy = AlignmentPolicy(seconds=100.0)  # nothing is settled
    known = hotwords or Hotwords([], lambda text: [])
    return Utterance(whisper, window, policy, known, lambda: 0.0), window  # type: ignore[arg-type]


def goes_on(window: Any, seconds: float) -> None:
    window.voice_end += seconds
    window.end = window.voice_end


def test_a_confirmed_text_is_not_decoded_again_and_has_its_new_place() -> None:
    whisper = ScriptedWhisper([(1, 2, MARK)])
    heard, window = utterance(whisper)
    assert heard.step(never).tentative == " ask alvares."
    goes_on(window, 0.2)
    transcript = heard.finish(never)
    assert whisper.decoded == 1
    assert transcript.text == "ask alvares."
    assert transcript.words[-1].end == 2.2
    assert transcript.closing == 0.9


def test_a_changed_word_is_decoded_again() -> None:
    whisper = ScriptedWhisper([(1, 2, MARK), (1, 3, MARK)], {(1, 2, MARK): [[0.9] * 3, [0.9, 0.3, 0.9]]})
    heard, window = utterance(whisper)
    heard.step(never)
    goes_on(window, 0.2)
    assert heard.finish(never).text == "ask please."


def test_a_mark_that_a_further_word_would_displace_is_decoded_again() -> None:
    whisper = ScriptedWhisper([(1, 2, MARK), (1, 2, 3, MARK)], {(1, 2, MARK): [[0.9] * 3, [0.9, 0.9, 0.3]]})
    heard, window = utterance(whisper)
    heard.step(never)
    goes_on(window, 0.2)
    assert heard.finish(never).text == "ask alvares please."


def test_after_more_voice_than_the_rest_of_a_word_everything_is_decoded() -> None:
    whisper = ScriptedWhisper([(1, 2, MARK), (1, 2, 3, MARK)])
    heard, window = utterance(whisper)
    heard.step(never)
    goes_on(window, 0.6)
    assert heard.finish(never).text == "ask alvares please."


def test_new_voice_is_counted_from_the_last_voice_and_not_from_the_last_pass() -> None:
    whisper = ScriptedWhisper([(1, 2, MARK), (1, 2, 3, MARK)])
    heard, window = utterance(whisper)
    window.end = 2.5  # half a second of silence was heard with it
    heard.step(never)
    goes_on(window, 0.7)
    assert heard.finish(never).text == "ask alvares please."


def test_a_hotword_that_the_model_would_not_write_is_put_in_its_place_anew() -> None:
    known = Hotwords(["Alvarez"], lambda text: [4])
    whisper = ScriptedWhisper([(1, 2, MARK)] * 2, {(1, 4, MARK): [[0.9, 0.35, 0.9]] * 3})
    heard, window = utterance(whisper, hotwords=known)
    assert heard.step(never).tentative == " ask Alvarez."
    goes_on(window, 0.2)
    assert heard.finish(never).text == "ask Alvarez."
    assert whisper.decoded == 2


def test_cancelled_nothing_is_decoded_and_the_text_stays() -> None:
    whisper = ScriptedWhisper([(1, 2, MARK)])
    heard, window = utterance(whisper)
    heard.step(never)
    goes_on(window, 0.2)
    assert heard.finish(lambda: True).words[-1].end == 2.0
    assert heard.finish(never).words[-1].end == 2.2
    assert whisper.decoded == 1


def test_reuse_changes_no_word_of_real_speech(
    recogniser: Recogniser, sentences: list[Recording], monkeypatch: pytest.MonkeyPatch
) -> None:
    decode = Mock(side_effect=recogniser._whisper.decode)
    monkeypatch.setattr(recogniser._whisper, "decode", decode)

    def texts() -> list[str]:
        found = []
        for sentence in sentences[1:]:
            utterance = recogniser.open()
            utterance.feed(sentence.audio[: -RATE // 2])
            utterance.step(never)
            utterance.feed(np.concatenate([sentence.audio[-RATE // 2 :], silence(0.1)]))
            found.append(utterance.finish(never).text)
        return found

    reused, count = texts(), decode.call_count
    monkeypatch.setattr(reuse, "worth_checking", lambda *a: False)
    assert reused == texts()
    assert count < decode.call_count - count
