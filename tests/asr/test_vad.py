"""Voice activity on real speech: the edges are true in audio time, and what is no voice is no voice."""

from __future__ import annotations

import numpy as np
import pytest
import soxr
from scipy.signal import butter, sosfilt

from asr.audio import Audio
from asr.vad import FRAME, SileroVad, VadStream, VoiceFrame
from fixtures.recordings import Recording
from fixtures.speech import RATE, silence

# In milliseconds. Each sentence below is cut to begin and end in its own voice, so its edges are known.
EDGE = 48


def voiced(audio: Audio) -> Audio:
    """The recording without the room's sound before and after the voice."""
    levels = np.sqrt(np.convolve(np.square(audio), np.ones(160) / 160, mode="same"))
    loud = np.flatnonzero(levels > levels.max() * 10 ** (-20 / 20))
    return audio[loud[0] : loud[-1]]


def edges(frames: list[VoiceFrame]) -> tuple[list[int], list[int]]:
    onsets = [frame.onset for frame in frames if frame.onset is not None]
    return onsets, [frame.offset for frame in frames if frame.offset is not None]


def test_the_edges_of_speech_are_where_it_begins_and_ends(vad: SileroVad, sentences: list[Recording]) -> None:
    for sentence in sentences:
        speech = voiced(sentence.audio)
        frames = vad.open().push(np.concatenate([silence(0.5), speech, silence(1.0)]))
        onsets, offsets = edges(frames)
        assert onsets[0] / RATE * 1000 == pytest.approx(500, abs=EDGE)
        assert offsets[-1] / RATE * 1000 == pytest.approx(500 + len(speech) / RATE * 1000, abs=EDGE)


def test_an_edge_is_told_once_within_a_few_frames_of_it(vad: SileroVad, sentences: list[Recording]) -> None:
    speech = voiced(sentences[1].audio)
    frames = vad.open().push(np.concatenate([silence(0.5), speech, silence(1.0)]))
    offset = next(frame for frame in reversed(frames) if frame.offset is not None)
    assert not offset.speaking
    assert offset.offset is not None
    assert offset.end - offset.offset < 0.2 * RATE
    assert not any(frame.speaking for frame in frames if frame.end > offset.end)


def test_pieces_of_any_length_give_the_same_frames(vad: SileroVad, sentences: list[Recording]) -> None:
    audio = sentences[1].audio[: 2 * RATE]
    whole = vad.open().push(audio)
    stream, pieces = vad.open(), list[VoiceFrame]()
    cuts = np.sort(np.random.default_rng(5).integers(0, len(audio), 200))
    for piece in np.split(audio, cuts):
        pieces += stream.push(piece)
    assert [(f.end, f.speaking, f.onset, f.offset) for f in pieces] == [
        (f.end, f.speaking, f.onset, f.offset) for f in whole
    ]
    assert np.allclose([f.probability for f in pieces], [f.probability for f in whole], atol=1e-4)


def test_single_samples_make_frames_of_512(vad: SileroVad) -> None:
    stream = vad.open()
    counts = [len(stream.push(np.zeros(1, np.float32))) for _ in range(2 * FRAME)]
    assert sum(counts) == 2
    assert counts[FRAME - 1] == 1


@pytest.mark.parametrize("gain", [0.02, 30.0])
def test_quiet_and_clipped_speech_is_speech(vad: SileroVad, sentences: list[Recording], gain: float) -> None:
    frames = vad.open().push(sentences[3].audio * np.float32(gain))
    assert sum(frame.speaking for frame in frames) * FRAME / RATE > 3.0


def test_a_dc_offset_does_not_move_the_edges(vad: SileroVad, sentences: list[Recording]) -> None:
    speech = voiced(sentences[1].audio) * np.float32(0.5)
    audio = np.concatenate([silence(0.5), speech, silence(1.0)]) + np.float32(0.2)
    _, offsets = edges(vad.open().push(audio))
    assert offsets[-1] / RATE * 1000 == pytest.approx(500 + len(speech) / RATE * 1000, abs=2 * EDGE)


def test_silence_noise_and_tones_are_no_speech(vad: SileroVad) -> None:
    time = np.arange(4 * RATE) / RATE
    noise = np.random.default_rng(1).standard_normal(len(time))
    for audio in (np.zeros_like(time), 0.2 * noise, 0.3 * np.sin(2 * np.pi * 440 * time)):
        assert not any(frame.speaking for frame in vad.open().push(audio.astype(np.float32)))


def over_a_telephone(audio: Audio) -> Audio:
    """The band of a telephone; what is above it is empty."""
    return np.asarray(soxr.resample(soxr.resample(audio, RATE, 8000), 8000, RATE), np.float32)


@pytest.mark.parametrize("ahead", [0, 128])
def test_a_caller_is_noticed_soon_after_digital_silence(
    vad: SileroVad, sentences: list[Recording], ahead: int
) -> None:
    """Wherever the frames lie, 150 ms of audio are enough for all but a sentence that begins in a whisper."""
    took = [noticed(vad, sentences, sentence, ahead) for sentence in sentences]
    assert sorted(took)[-2] < 150


def test_a_voice_is_noticed_as_soon_in_the_middle_of_a_frame(
    vad: SileroVad, sentences: list[Recording]
) -> None:
    for sentence in sentences:
        in_the_middle = noticed(vad, sentences, sentence, ahead=FRAME // 2)
        assert in_the_middle == pytest.approx(noticed(vad, sentences, sentence, ahead=0), abs=8)


def noticed(vad: SileroVad, sentences: list[Recording], sentence: Recording, ahead: int) -> float:
    """How many milliseconds of a sentence's voice it takes, behind another and seconds of digital silence.

    `ahead`: samples by which the sentence lies earlier in the stream, and so elsewhere in its frames.
    """
    lead = np.concatenate([sentences[1].audio, silence(3.0)])[ahead:]
    frames = vad.open().push(over_a_telephone(np.concatenate([lead, voiced(sentence.audio)])))
    found = next(frame.end for frame in frames if frame.onset is not None and frame.end > len(lead))
    return (found - len(lead)) / RATE * 1000


class Scripted:
    """The network as a session that gives one stream's two instances their probabilities."""

    def __init__(self, *instances: list[float]) -> None:
        self._instances = list(instances)

    def run(self, _: None, inputs: dict[str, np.ndarray]) -> tuple[np.ndarray, ...]:
        return np.array(self._instances.pop(0), np.float32), inputs["h"], inputs["c"]


def test_a_voice_that_only_one_instance_still_hears_ends_once() -> None:
    fades = [0.0, 0.3, 0.9, 0.9, 0.3, 0.2, 0.3, 0.2, 0.3, 0.2]
    lingers = [0.0, 0.3, 0.9, 0.9, 0.9, 0.8, 0.7, 0.7, 0.6, 0.6]
    stream = VadStream(Scripted(fades, lingers))
    onsets, offsets = edges(stream.push(np.full(len(fades) * FRAME, 0.1, np.float32)))
    assert (len(onsets), len(offsets)) == (1, 1)


def test_a_faint_voice_does_not_end_where_the_louder_one_before_it_did() -> None:
    heard = [0.0, 0.3, 0.9, 0.9, 0.1, 0.1, 0.3, 0.9, 0.1, 0.1]
    noise = np.random.default_rng(0).uniform(-1, 1, len(heard) * FRAME).astype(np.float32)
    noise[4 * FRAME :] *= 0.001
    onsets, offsets = edges(VadStream(Scripted(heard, [0.0] * len(heard))).push(noise))
    assert onsets[0] < offsets[0] <= onsets[1] <= offsets[1]


def test_clicks_breath_and_bursts_of_noise_are_no_speech(vad: SileroVad) -> None:
    random = np.random.default_rng(7)
    band = butter(4, [400, 3000], "band", fs=RATE, output="sos")
    for _ in range(10):
        breath = sosfilt(band, random.standard_normal(RATE // 2)) * np.hanning(RATE // 2) * 0.1
        click = random.standard_normal(300) * np.exp(-np.arange(300) / 40) * 0.8
        burst = random.standard_normal(RATE // 5) * np.hanning(RATE // 5) * 0.3
        for sound in (breath, click, burst):
            audio = np.concatenate([silence(1.0), sound.astype(np.float32), silence(0.5)])
            assert not any(frame.speaking for frame in vad.open().push(over_a_telephone(audio)))
