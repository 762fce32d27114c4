"""Real speech over networks that lose, delay and reorder it: what the service hears of it, and when."""

from __future__ import annotations

import numpy as np
import pytest

from asr.recogniser import Recogniser
from asr.vad import SileroVad, VoiceFrame
from fixtures.phone_scene import PhoneScene
from fixtures.recordings import read_aloud
from fixtures.speech import RATE
from fixtures.virtual_time import run
from fixtures.words import words_wrong
from pipeline.audio import Audio
from tests.machine import recordings
from tests.models import path
from web.phone.simulator.line import Network

BEGINS = 0.5
SENTENCE = "sense_and_sensibility_01_austen_64kb-0880"

NETWORKS = {
    "1 % lost": Network(latency=0.03, jitter=0.01, loss=0.01, seed=3),
    "5 % lost": Network(latency=0.03, jitter=0.01, loss=0.05, seed=3),
    "300 ms of jitter": Network(latency=0.03, jitter=0.3),
    "a tenth out of order": Network(latency=0.03, swapped=0.1),
    "all of it": Network(latency=0.03, jitter=0.3, loss=0.01, swapped=0.1, seed=3),
}


class Ear:
    """The real voice activity detector; keeps what it was given."""

    def __init__(self) -> None:
        self.heard: list[Audio] = []
        self._stream = SileroVad().open()

    def open(self) -> Ear:
        return self

    def push(self, audio: Audio) -> list[VoiceFrame]:
        self.heard.append(audio)
        return self._stream.push(audio)


@pytest.fixture(scope="module")
def sentence() -> tuple[Audio, str]:
    recordings()
    (read,) = (one for one in read_aloud() if one.name == SENTENCE)
    return read.audio, read.text


@pytest.fixture(scope="module")
def recogniser() -> Recogniser:
    return Recogniser(path("whisper-base"))


def heard_over(network: Network, speech: Audio, carrier: str) -> Audio:
    """What the service listened to, from the start of the call on."""
    ear = Ear()
    seconds = BEGINS + speech.size / RATE + 1.0
    run(PhoneScene(carrier, recordings=[(BEGINS, speech)], vad=ear, network=network, seconds=seconds).play())
    return np.concatenate(ear.heard)


def lag(heard: Audio, reference: Audio) -> float:
    """Milliseconds by which the end of what was heard is later than in the reference."""
    end = min(heard.size, reference.size)
    last = slice(end - 2 * RATE, end)
    spectrum = np.fft.rfft(heard[last], 4 * RATE) * np.conj(np.fft.rfft(reference[last], 4 * RATE))
    shift = int(np.argmax(np.fft.irfft(spectrum)))
    return (shift if shift < 2 * RATE else shift - 4 * RATE) / RATE * 1000


def errors(recogniser: Recogniser, audio: Audio, text: str) -> int:
    utterance = recogniser.open()
    utterance.feed(audio)
    return words_wrong(text, utterance.finish(lambda: False).text)


@pytest.mark.parametrize("name", NETWORKS)
def test_real_speech_survives_a_bad_network(
    name: str, sentence: tuple[Audio, str], recogniser: Recogniser
) -> None:
    speech, text = sentence
    clean = heard_over(Network(), speech, "telnyx")
    heard = heard_over(NETWORKS[name], speech, "telnyx")
    assert abs(lag(heard, clean)) <= 20
    assert errors(recogniser, heard, text) <= errors(recogniser, clean, text) + 1


@pytest.mark.parametrize("carrier", ["vonage", "asterisk"])
def test_carriers_without_a_clock_lose_only_what_was_lost(carrier: str, sentence: tuple[Audio, str]) -> None:
    speech, _ = sentence
    heard = heard_over(Network(latency=0.03, jitter=0.3), speech, carrier)
    clean = heard_over(Network(), speech, carrier)
    assert abs(lag(heard, clean)) <= 20
    lossy = heard_over(NETWORKS["1 % lost"], speech, carrier)
    assert clean.size - lossy.size == 4 * 320, "frames that this network lost"
