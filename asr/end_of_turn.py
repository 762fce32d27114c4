"""The end-of-turn detector: Smart Turn judges by prosody, where voice activity knows silence alone.

Smart Turn v3.2 (https://github.com/pipecat-ai/smart-turn): Whisper tiny's encoder, attention pooling and a
classifier over the last 8 seconds of the turn.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from asr.audio import SAMPLE_RATE, Audio, as_audio
from asr.features import LogMel, normalise
from asr.onnx_session import session

SECONDS = 8


class SmartTurn:
    """The detector, loaded once and shared by all calls. Thread-safe."""

    def __init__(self, path: Path, *, threads: int = 1) -> None:
        """`path`: the ONNX file. `threads`: more than one pays only on an idle machine.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged, or not a Smart Turn v3 model.
        """
        self._session = session(path, threads)
        inputs = {node.name: node.shape for node in self._session.get_inputs()}
        if list(inputs) != ["input_features"] or inputs["input_features"][1:] != [80, SECONDS * 100]:
            raise ValueError(f"{path} is not a Smart Turn v3 model: its inputs are {inputs}")
        self._log_mel = LogMel(80)

    def probability(self, audio: Audio) -> float:
        """That the turn is over, in [0, 1], given its audio up to now: float32[n] at 16 kHz.

        The last 8 s are used; a shorter turn is padded with silence in front. Give it the turn with the first
        200 ms of the pause after it, as in training. No audio at all is 0.
        """
        audio = as_audio(audio)[-SECONDS * SAMPLE_RATE :]
        if not audio.any():
            return 0.0
        window = np.zeros(SECONDS * SAMPLE_RATE, np.float32)
        window[-len(audio) :] = audio
        # The network was trained on standardised audio, the padding included.
        window = (window - window.mean()) / np.sqrt(window.var() + 1e-7)
        output = self._session.run(None, {"input_features": normalise(self._log_mel.centred(window))})
        return float(np.ravel(output[0])[0])
