"""The part of an utterance that a pass looks at: its features, made as audio arrives, and its voice."""

from __future__ import annotations

import numpy as np

from asr.audio import SAMPLE_RATE, Audio
from asr.features import HOP, SILENCE, WINDOW, Features, LogMel
from asr.vad import VadStream
from asr.whisper import FRAMES_PER_SECOND, MAX_SECONDS

_HALF = WINDOW // 2


class Window:
    """Log power frames from `start` to the end of the audio. Times are seconds since the utterance began."""

    def __init__(self, log_mel: LogMel, vad: VadStream) -> None:
        self._log_mel = log_mel
        self._vad = vad
        self._first = 0  # the frame number of the first row
        self._rows = np.empty((0, log_mel.bands), np.float32)
        # The audio that frames to come need. A frame is centred on its time: the first needs some before it.
        self._tail = np.zeros(_HALF, np.float32)
        self._samples = 0
        self.voice_start: float | None = None  # of the first voice in the window
        self.voice_end = 0.0  # of the last voice so far; moves while there is some

    @property
    def start(self) -> float:
        return self._first / FRAMES_PER_SECOND

    @property
    def end(self) -> float:
        return self._samples / SAMPLE_RATE

    def append(self, audio: Audio) -> None:
        self._samples += len(audio)
        self._tail = np.concatenate([self._tail, audio])
        rows = self._log_mel.frames(self._tail)
        self._tail = self._tail[len(rows) * HOP :]
        self._rows = np.concatenate([self._rows, rows])
        for frame in self._vad.push(audio):
            if frame.onset is not None and self.voice_start is None:
                self.voice_start = frame.onset / SAMPLE_RATE
            if frame.speaking:
                self.voice_end = frame.end / SAMPLE_RATE
            elif frame.offset is not None:
                self.voice_end = frame.offset / SAMPLE_RATE

    def features(self, padding: float) -> Features:
        """The rows up to `padding` seconds after the voice: recorded as far as they go, then silence."""
        wanted = round((self.voice_end + padding) * FRAMES_PER_SECOND) - self._first
        wanted = min(wanted, int(MAX_SECONDS * FRAMES_PER_SECOND))
        rows = np.concatenate([self._rows, self._log_mel.frames(np.pad(self._tail, (0, _HALF)))])[:wanted]
        return np.pad(rows, ((0, wanted - len(rows)), (0, 0)), constant_values=SILENCE)

    def trim(self, start: float) -> None:
        """Forget what lies before `start`."""
        count = max(0, min(len(self._rows), round(start * FRAMES_PER_SECOND) - self._first))
        self._rows = self._rows[count:].copy()
        self._first += count
        if self.voice_start is not None:
            self.voice_start = max(self.voice_start, self.start)
