"""The loaded stages as a call needs them. The real ones are loaded by `pipeline.service`; tests put fakes
here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from asr.recogniser import Partial, Transcript
from asr.vad import VoiceFrame
from llm.language_model import Message
from llm.sentences import SentencePolicy
from llm.verify import Verification
from pipeline.events import Audio
from pipeline.precedence import Precedence
from pipeline.reply import Speaker
from pipeline.workers import Workers
from tts.voice import Voice

Cancelled = Callable[[], bool]


class VoiceActivity(Protocol):
    """One call's voice activity (see asr.vad.VadStream)."""

    def push(self, audio: Audio) -> list[VoiceFrame]: ...


class Listening(Protocol):
    """One caller turn being recognised (see asr.recogniser.Utterance)."""

    @property
    def due(self) -> bool: ...

    def feed(self, audio: Audio) -> None: ...

    def step(self, cancelled: Cancelled) -> Partial: ...

    def finish(self, cancelled: Cancelled) -> Transcript: ...


class Talk(Speaker, Protocol):
    """One call's side of the language stage (see llm.language_model.Conversation)."""

    def prefill(self, messages: Sequence[Message], cancelled: Cancelled) -> int: ...

    def learn(self, text: str) -> None: ...

    def close(self) -> None: ...


class Recogniser(Protocol):
    def open(self, *, hotwords: Sequence[str] = (), alone: Sequence[str] = ()) -> Listening: ...


class VoiceActivityModel(Protocol):
    def open(self) -> VoiceActivity: ...


class EndOfTurnDetector(Protocol):
    def probability(self, audio: Audio) -> float: ...


class LanguageStage(Protocol):
    def open(
        self, *, tenant: str = "", sentences: SentencePolicy = ..., verification: Verification = ...
    ) -> Talk: ...


@dataclass(frozen=True, slots=True)
class Stages:
    """What all calls of a process share.

    `speculate`: draft behind the commit gate. `anticipate`: begin the draft before the soft end.
    `precedence`: whose replies the language stage makes first. `no_draft_because`: why the machine has no
    room for work that may be thrown away, None when it has.
    """

    workers: Workers
    vad: VoiceActivityModel
    recogniser: Recogniser
    end_of_turn: EndOfTurnDetector
    language: LanguageStage
    voice: Voice
    speculate: bool = True
    anticipate: bool = True
    precedence: Precedence = field(default_factory=Precedence)
    no_draft_because: Callable[[], str | None] = lambda: None
