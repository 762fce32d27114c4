"""What a call tells the peer at the other end of its socket, in the pipeline's own words.

A front end (realtime protocol, phone carrier, command line) implements `Peer` and translates these to its
wire. Every event of a turn carries (turn, revision); a front end never has to decide what is stale: the call
only emits what the peer may act on now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from pipeline.audio import Audio


class PeerGone(Exception):
    """The peer's socket is closed or did not take a message within its send timeout."""


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """The caller began to speak. `audio_ms`: position in the caller's audio since the call began."""

    turn: int
    revision: int
    audio_ms: int


@dataclass(frozen=True, slots=True)
class SpeechDismissed:
    """What `SpeechStarted` announced was no turn: noise, or words that a typed message replaced. The turn's
    number may be used again. `audio_ms`: the position up to which it was listened to."""

    turn: int
    revision: int
    audio_ms: int


@dataclass(frozen=True, slots=True)
class SpeechStopped:
    """The caller's turn is decided to be over (commit). `audio_ms`: true end of speech, not detection
    time."""

    turn: int
    revision: int
    audio_ms: int


@dataclass(frozen=True, slots=True)
class TranscriptDelta:
    """Words of the caller that will not change any more; `text` appends to the earlier deltas of the same
    turn."""

    turn: int
    revision: int
    text: str


@dataclass(frozen=True, slots=True)
class TranscriptDone:
    """The caller's whole turn as committed."""

    turn: int
    revision: int
    text: str


@dataclass(frozen=True, slots=True)
class ReplyStarted:
    """The answer to a committed turn begins. Turn 0 is what the agent says unasked (greeting,
    are-you-there)."""

    turn: int
    revision: int
    reply_id: str


@dataclass(frozen=True, slots=True)
class ReplyText:
    """One sentence of the reply as written, sent just before its audio. Concatenated they are the reply."""

    turn: int
    revision: int
    reply_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ReplyAudio:
    """20-40 ms of the reply: float32 mono [-1, 1] at `rate` Hz. `offset_ms`: its place in the reply's
    audio."""

    turn: int
    revision: int
    reply_id: str
    samples: Audio
    rate: int
    offset_ms: float


@dataclass(frozen=True, slots=True)
class ReplyMark:
    """A named point after the audio sent so far; a carrier with marks echoes it once played (see
    `Call.playback`)."""

    turn: int
    revision: int
    reply_id: str
    name: str


@dataclass(frozen=True, slots=True)
class ReplyDone:
    """Everything of the reply was sent, or it was ended. `status`: completed, interrupted, cut (length),
    failed (a stage failed, or nothing of it had sound)."""

    turn: int
    revision: int
    reply_id: str
    status: str
    text: str
    heard: str


@dataclass(frozen=True, slots=True)
class PausePlayback:
    """The caller may be interrupting: hold playback, keep the buffer."""

    turn: int
    revision: int
    reply_id: str


@dataclass(frozen=True, slots=True)
class ResumePlayback:
    """It was no interruption: go on from where playback stopped."""

    turn: int
    revision: int
    reply_id: str


@dataclass(frozen=True, slots=True)
class ClearPlayback:
    """A real interruption: drop everything not yet played."""

    turn: int
    revision: int
    reply_id: str


@dataclass(frozen=True, slots=True)
class TurnLogged:
    """The finished turn's row of the latency log, as plain data (see
    `pipeline.telemetry.timeline.TurnRecord.as_dict`)."""

    turn: int
    revision: int
    record: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StageProgress:
    """A mark of the running turn's timeline was set; for live waterfalls. `ms` is relative to speech_end
    (may be < 0)."""

    turn: int
    revision: int
    mark: str
    ms: float


@dataclass(frozen=True, slots=True)
class CallFailed:
    """A stage failed. `stage`: asr, llm, tts, pipeline. The call goes on unless a CallEnded follows."""

    turn: int
    revision: int
    stage: str
    message: str


@dataclass(frozen=True, slots=True)
class CallEnded:
    """The last event of a call. `reason`: goodbye, max_length, silence, hang_up, peer_gone, error,
    shutdown."""

    turn: int
    revision: int
    reason: str


CallEvent = (
    SpeechStarted
    | SpeechDismissed
    | SpeechStopped
    | TranscriptDelta
    | TranscriptDone
    | ReplyStarted
    | ReplyText
    | ReplyAudio
    | ReplyMark
    | ReplyDone
    | PausePlayback
    | ResumePlayback
    | ClearPlayback
    | TurnLogged
    | StageProgress
    | CallFailed
    | CallEnded
)


class Peer(Protocol):
    """The other end of a call, as the pipeline sees it."""

    @property
    def holds_playback(self) -> bool:
        """Whether the peer can pause and go on (PausePlayback, ResumePlayback). If not, the call clears the
        peer's buffer instead and sends again from the heard position."""

    async def send(self, event: CallEvent) -> None:
        """Put `event` on the wire; bounded by the front end's send timeout. Raises PeerGone."""
        ...
