"""The audio of one turn on its way into recognition, and when the next partial pass over it is due."""

from __future__ import annotations

import asyncio

from pipeline.audio import CALLER_RATE, Audio
from pipeline.stages import TurnRecognition
from pipeline.workers import CancelToken

_LEAST_PASS_SECONDS = 0.1
"""New audio that a recognition pass needs at least, however quiet the caller falls."""


class CallerSpeech:
    """Audio is float32 mono at 16 kHz; counts are samples since the turn's audio began."""

    def __init__(self, recognition: TurnRecognition) -> None:
        self.recognition = recognition
        self.fed = 0
        self.passed = 0
        """What the last pass was given."""
        self.pass_token = CancelToken()
        self.urgent = False
        """The agent waits to know what is said: a pass need not pay."""
        self._resting = False
        self._falling_quiet = False
        self._changed = asyncio.Event()

    @property
    def seconds(self) -> float:
        return self.fed / CALLER_RATE

    @property
    def falling_quiet(self) -> bool:
        """Whether the last frame was quiet; one more will confirm it."""
        return self._falling_quiet

    def feed(self, audio: Audio) -> None:
        self.recognition.feed(audio)
        self.fed += audio.size
        self._changed.set()

    def sounds(self, *, quiet: bool) -> None:
        """The last frame was or was not quiet.

        A pass that begins at a quiet one hears all that was said, and the final recognition finds it done.
        """
        self._falling_quiet = quiet
        if quiet:
            self._changed.set()

    async def pass_is_due(self, seconds: float) -> None:
        """Wait until `seconds` of new audio have come since the last pass and one pays, or less as the caller
        falls quiet."""
        while not self._is_due(seconds):
            self._changed.clear()
            await self._changed.wait()
        self.passed = self.fed

    def _is_due(self, seconds: float) -> bool:
        new = (self.fed - self.passed) / CALLER_RATE
        if self._resting or new < _LEAST_PASS_SECONDS:
            return False
        return self._falling_quiet or (new >= seconds and (self.urgent or self.recognition.due))

    def rest_passes(self, *, finish_running: bool) -> None:
        """No more passes while the caller is quiet; a running one may finish if it hears everything."""
        self._resting = True
        if not finish_running:
            self.pass_token.cancel()

    def resume_passes(self) -> None:
        """The caller goes on."""
        self._resting = False
        self.pass_token = CancelToken()
        self._changed.set()

    def stop_passes(self) -> None:
        """The turn is over."""
        self.pass_token.cancel()
