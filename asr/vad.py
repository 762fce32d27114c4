"""Voice activity: where the caller's speech begins and ends, in audio time.

The network is Silero VAD v6 (https://github.com/snakers4/silero-vad), whose ONNX file ships inside
faster-whisper. It looks at frames of 512 samples with the 64 samples before them and carries an LSTM's state;
without that context its scores collapse. Its probability crosses the thresholds some frames after the voice
really starts or stops, so the frame that confirms a change also says where, by the energy around it.

The network was trained on recordings, all of which hiss a little. After seconds of digital silence, and where
the half of the band that a telephone does not carry is empty, it needs several frames more to recognise a
voice. So a faint noise is added to its copy of the audio; nothing else gets it.

A voice that begins late in a frame is noticed a frame later. So a second instance of the network hears the
same stream in frames that lie half a frame off, and whichever notices a voice first says that it began.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
from faster_whisper.utils import get_assets_path
from numpy.typing import NDArray

from asr.audio import Audio, as_audio
from asr.onnx_session import session

FRAME = 512
CONTEXT = 64
STATE = 128
BLOCK = 128  # 8 ms: the precision of `onset` and `offset`

NOISE = 10 ** (-70 / 20)
"""Standard deviation of the noise for the network: under that of any room."""

ENTER, RISING, ENTER_FRAMES = 0.5, 0.25, 2
EXIT, EXIT_FRAMES = 0.35, 2


@dataclass(frozen=True, slots=True)
class VoiceFrame:
    """One frame of 32 ms (512 samples at 16 kHz). Positions are sample indices since the stream began.

    Frames follow each other without a gap; one more, half a frame off, tells of an onset that was noticed
    between two of them.
    """

    end: int
    """Just after the frame."""
    probability: float
    """That the frame is speech, as the network says."""
    speaking: bool
    """After hysteresis: begins at a frame of 0.5 or more after one of 0.25 or more (clicks are single
    frames), ends at 2 frames under 0.35."""
    onset: int | None = None
    """Where speech began; only on the frame that confirms it."""
    offset: int | None = None
    """Where speech ended, in the audio and not when it was noticed; only on the frame that confirms it."""


class SileroVad:
    """The network, loaded once; `open` gives each call its own stream. Thread-safe; runs on one thread."""

    def __init__(self, model: Path | None = None) -> None:
        """`model`: a Silero v6 ONNX file; None takes the one that faster-whisper ships.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged, or not a Silero v6 model.
        """
        path = model or Path(get_assets_path()) / "silero_vad_v6.onnx"
        self._session = session(path, threads=1)
        inputs = {node.name for node in self._session.get_inputs()}
        if inputs != {"input", "h", "c"}:
            raise ValueError(f"{path} is not a Silero v6 model: its inputs are {sorted(inputs)}")

    def open(self) -> VadStream:
        return VadStream(self._session)


class VadStream:
    """The voice activity of one call. Used by one thread at a time."""

    def __init__(self, network: onnxruntime.InferenceSession) -> None:
        self._networks = (_Network(network), _Network(network, early=FRAME // 2))
        self._speaking = False
        self._below = 0
        self._edges = _Edges()

    def push(self, audio: Audio) -> list[VoiceFrame]:
        """The frames completed by `audio`: float32[n] at 16 kHz, any length; the remainder is kept."""
        audio = as_audio(audio)
        scored = [frame for network in self._networks for frame in network.push(audio)]
        found = map(self._advance, sorted(scored, key=lambda frame: frame.end))
        return [frame for frame in found if frame is not None]

    def _advance(self, frame: _Scored) -> VoiceFrame | None:
        between = frame.end % FRAME != 0
        onset = offset = None
        if not between:
            self._edges.push(frame.samples)
            self._below = self._below + 1 if frame.probability < EXIT else 0
        if not self._speaking and frame.begins:
            self._speaking, self._below = True, 0
            onset = self._edges.onset(max(0, frame.end - ENTER_FRAMES * FRAME))
        elif between:
            return None
        elif self._speaking and self._below >= EXIT_FRAMES:
            self._speaking = False
            offset = self._edges.offset(frame.end - EXIT_FRAMES * FRAME)
        return VoiceFrame(frame.end, frame.probability, self._speaking, onset, offset)


@dataclass(frozen=True, slots=True)
class _Scored:
    """A frame as one instance of the network hears it. `begins`: it confirms that a voice began which this
    instance did not hear before."""

    end: int
    samples: Audio
    probability: float
    begins: bool


class _Network:
    """One instance of the network. `early`: samples of its first frame that lie before the stream, silent."""

    def __init__(self, network: onnxruntime.InferenceSession, early: int = 0) -> None:
        self._session = network
        self._rest = np.zeros(early, np.float32)
        self._end = -early
        self._context = np.zeros(CONTEXT, np.float32)
        self._h = np.zeros((1, 1, STATE), np.float32)
        self._c = np.zeros((1, 1, STATE), np.float32)
        self._previous = 0.0
        self._speaking = False
        self._below = 0
        self._noise = np.random.default_rng(early)

    def push(self, audio: Audio) -> list[_Scored]:
        audio = np.concatenate([self._rest, audio])
        count = len(audio) // FRAME
        self._rest = audio[count * FRAME :]
        if not count:
            return []
        frames = audio[: count * FRAME].reshape(count, FRAME)
        return [
            self._score(frame, float(probability))
            for frame, probability in zip(frames, self._probabilities(frames), strict=True)
        ]

    def _probabilities(self, frames: Audio) -> NDArray[np.float32]:
        frames = frames + np.float32(NOISE) * self._noise.standard_normal(frames.shape, np.float32)
        contexts = np.concatenate([self._context[None], frames[:-1, -CONTEXT:]])
        self._context = frames[-1, -CONTEXT:].copy()
        outputs = self._session.run(
            None, {"input": np.concatenate([contexts, frames], axis=1), "h": self._h, "c": self._c}
        )
        probabilities: NDArray[np.float32]
        probabilities, self._h, self._c = outputs
        return probabilities.reshape(-1)

    def _score(self, frame: Audio, probability: float) -> _Scored:
        self._end += FRAME
        self._below = self._below + 1 if probability < EXIT else 0
        if self._below >= EXIT_FRAMES:
            self._speaking = False
        # A voice that the other instance has lost and this one has not begins only once: else the two would
        # end it and begin it again with every frame.
        begins = not self._speaking and self._previous >= RISING and probability >= ENTER
        self._speaking = self._speaking or begins
        self._previous = probability
        return _Scored(self._end, frame, probability, begins)


class _Edges:
    """Places the edges of speech by the energy of 8 ms blocks around the frames that confirmed them."""

    MEMORY = 2 * 16_000 // BLOCK  # blocks remembered: 2 s
    REACH = 40  # blocks searched before the confirming frames: 320 ms
    STOP = 6  # blocks of silence within a word: 48 ms
    QUIET = 8  # blocks that show the background: 64 ms
    BELOW_PEAK = 10 ** (-35 / 20)  # quieter than this under the loudest block is no voice
    ABOVE_FLOOR = 2.0  # nor is what stays within 6 dB of the background

    def __init__(self) -> None:
        self._levels: deque[float] = deque(maxlen=self.MEMORY)
        self._end = 0
        self._last_onset = self._last_offset = 0

    def push(self, frame: Audio) -> None:
        blocks = frame.reshape(-1, BLOCK)
        self._levels.extend(np.sqrt(np.mean(np.square(blocks - frame.mean()), axis=1)).tolist())
        self._end += len(frame)

    def onset(self, estimate: int) -> int:
        """Where the voice that leads up to `estimate` begins; not before the last offset."""
        levels, index = self._around(estimate)
        before = levels[max(0, index - self.REACH) : index]
        begin = index
        for block in (
            index - len(before) + np.flatnonzero(before > self._threshold(levels[index:], before))[::-1]
        ):
            if begin - block > self.STOP:
                break
            begin = int(block)
        self._last_onset = max(self._last_offset, self._position(levels, begin))
        return self._last_onset

    def offset(self, estimate: int) -> int:
        """The end of the last block of voice before `estimate`, or just after it; not before the onset."""
        levels, index = self._around(estimate)
        first = max(0, index - self.REACH)
        voiced = np.flatnonzero(levels[first:] > self._threshold(levels, levels[-self.QUIET :]))
        end = self._position(levels, first + (int(voiced[-1]) + 1 if voiced.size else 0))
        self._last_offset = max(self._last_onset, end)
        return self._last_offset

    def _around(self, position: int) -> tuple[NDArray[np.float64], int]:
        levels = np.asarray(self._levels)
        return levels, len(levels) - (self._end - position) // BLOCK

    def _position(self, levels: NDArray[np.float64], index: int) -> int:
        return self._end - (len(levels) - index) * BLOCK

    def _threshold(self, voice: NDArray[np.float64], background: NDArray[np.float64]) -> float:
        floor = float(np.percentile(background, 20)) if background.size else 0.0
        return max(float(voice.max()) * self.BELOW_PEAK, floor * self.ABOVE_FLOOR)
