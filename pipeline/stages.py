"""The loaded stages as a call needs them. The real ones are loaded by `pipeline.service`; tests put fakes
here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from asr.recogniser import Partial, Transcript
from asr.vad import VoiceFrame
from llm.language_model import Message, ReplyEvent, Sampling
from llm.sentences import SentencePolicy
from llm.verify import Verification
from pipeline.audio import Audio
from pipeline.language_priority import LanguagePriority
from pipeline.workers import Workers
from tts.voice import Voice

Cancelled = Callable[[], bool]


class StageFailed(Exception):
    """A stage raised. `stage`: asr, llm or tts; the cause is chained."""

    def __init__(self, stage: str, cause: BaseException) -> None:
        super().__init__(f"{stage}: {cause}")
        self.stage = stage
        self.cause = cause


class VoiceActivity(Protocol):
    """One call's voice activity (see asr.vad.VadStream)."""

    def push(self, audio: Audio) -> list[VoiceFrame]: ...


class TurnRecognition(Protocol):
    """One caller turn being recognised (see asr.recogniser.Utterance)."""

    @property
    def due(self) -> bool: ...

    def feed(self, audio: Audio) -> None: ...

    def step(self, cancelled: Cancelled) -> Partial: ...

    def finish(self, cancelled: Cancelled) -> Transcript: ...


class LanguageSession(Protocol):
    """One call's side of the language stage (see llm.language_model.Conversation)."""

    def reply(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        *,
        draft: Sequence[int] = (),
        cancelled: Cancelled,
    ) -> Iterator[ReplyEvent]: ...

    def prefill(self, messages: Sequence[Message], cancelled: Cancelled) -> int: ...

    def learn(self, text: str) -> None: ...

    def close(self) -> None: ...


class RecognitionStage(Protocol):
    def open(self, *, hotwords: Sequence[str] = (), alone: Sequence[str] = ()) -> TurnRecognition: ...


class VoiceActivityStage(Protocol):
    def open(self) -> VoiceActivity: ...


class EndOfTurnStage(Protocol):
    def probability(self, audio: Audio) -> float: ...


class LanguageStage(Protocol):
    def open(
        self, *, tenant: str = "", sentences: SentencePolicy = ..., verification: Verification = ...
    ) -> LanguageSession: ...


@dataclass(frozen=True, slots=True)
class Stages:
    """What all calls of a process share.

    `speculate`: draft behind the commit gate. `anticipate`: begin the draft before the soft end.
    `priority`: whose replies the language stage makes first. `no_draft_because`: why the machine has no
    room for work that may be thrown away, None when it has.
    """

    workers: Workers
    vad: VoiceActivityStage
    recogniser: RecognitionStage
    end_of_turn: EndOfTurnStage
    language: LanguageStage
    voice: Voice
    speculate: bool = True
    anticipate: bool = True
    priority: LanguagePriority = field(default_factory=LanguagePriority)
    no_draft_because: Callable[[], str | None] = lambda: None
