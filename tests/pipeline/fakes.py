"""Stages with an exact schedule, for calls in virtual time.

The caller's audio is made of constant levels: 1.0 is speech, 0.0 is silence; what it says is a script of
words, each with the time at which it has been said. Stages run on the loop itself and take the virtual time
they are told to.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np

from asr.recogniser import Partial, Transcript, Word
from asr.vad import VoiceFrame
from llm.language_model import Delta, Finished, Message, ReplyEvent, Sampling, Sentence
from llm.sentences import WHOLE_SENTENCES, SentencePolicy
from llm.stats import ReplyStats
from llm.verify import Verification
from pipeline.agent import Agent, Silence
from pipeline.call import Call
from pipeline.events import CallEvent, PeerGone, ReplyAudio
from pipeline.stages import RecognitionStage, Stages, VoiceActivityStage
from pipeline.telemetry.timeline import TurnRecord
from pipeline.workers import CancelToken
from tts.voice import VoiceChunk, WordTiming

T = TypeVar("T")
RATE = 16_000
VOICE_RATE = 8_000
CHARACTER_SECONDS = 0.06
"""The fake voice takes this long to say one character."""

FRAME = 512
BREATH = np.random.default_rng(0).normal(0, 0.1, VOICE_RATE).astype(np.float32)
"""What the fake voice sounds like: unlike the caller's constant levels, so that none is the other's echo."""


class InlineWorkers:
    """Runs stages on the loop; a stage takes `seconds[stage]` of virtual time, a stream that long for each
    item."""

    def __init__(self, seconds: Mapping[str, float] | None = None) -> None:
        self.seconds = {"vad": 0.0, "asr": 0.1, "end_of_turn": 0.04, "llm": 0.03, "tts": 0.02} | dict(
            seconds or {}
        )

    async def run(self, stage: str, function: Callable[..., T], *arguments: Any) -> T:
        await asyncio.sleep(self.seconds[stage])
        return function(*arguments)

    async def stream(
        self, stage: str, produce: Callable[[], Iterable[T]], token: CancelToken
    ) -> AsyncGenerator[T, None]:
        for item in produce():
            await asyncio.sleep(self.seconds[stage])
            yield item

    def close(self) -> None:
        """Nothing runs."""


class LevelVad:
    """Voice activity by level, with two frames of confirmation at the onset."""

    def open(self) -> LevelVad:
        return LevelVad()

    def __init__(self) -> None:
        self._rest = np.zeros(0, np.float32)
        self._end = 0
        self._loud = 0
        self._speaking = False

    def push(self, audio: np.ndarray) -> list[VoiceFrame]:
        audio = np.concatenate([self._rest, audio])
        whole = audio.size // FRAME * FRAME
        self._rest = audio[whole:]
        return [self._one(level) for level in audio[:whole].reshape(-1, FRAME).mean(axis=1).tolist()]

    def _one(self, level: float) -> VoiceFrame:
        self._end += FRAME
        onset = offset = None
        self._loud = self._loud + 1 if level > 0.5 else 0
        if not self._speaking and self._loud == 2:
            self._speaking, onset = True, self._end - 2 * FRAME
        elif self._speaking and level <= 0.5:
            self._speaking, offset = False, self._end - FRAME
        return VoiceFrame(self._end, level, self._speaking, onset, offset)


@dataclass
class Script:
    """What the caller says: (text with its leading space, seconds since the call began at which it has been
    said)."""

    words: list[tuple[str, float]] = field(default_factory=list)


class ScriptedRecogniser:
    """Knows the script: a word is heard once its end has been fed. Opened utterances count from what was fed
    then."""

    def __init__(self, script: Script, clock: Callable[[], float]) -> None:
        self._script = script
        self._clock = clock
        self._taken = 0
        self.failing: Exception | None = None
        self.expected_alone: list[Sequence[str]] = []

    def open(self, *, hotwords: Sequence[str] = (), alone: Sequence[str] = ()) -> ScriptedUtterance:
        self.expected_alone.append(alone)
        return ScriptedUtterance(self)

    def words_until(self, start: float, end: float) -> tuple[Word, ...]:
        return tuple(
            Word(text, at - start, at - start, 1.0) for text, at in self._script.words if start <= at <= end
        )


class ScriptedUtterance:
    due = True

    def __init__(self, recogniser: ScriptedRecogniser) -> None:
        self._recogniser = recogniser
        self._began: float | None = None
        self._fed = 0

    def feed(self, audio: np.ndarray) -> None:
        if self._began is None:
            self._began = self._recogniser._clock() - audio.size / RATE
        self._fed += audio.size

    def _words(self) -> tuple[Word, ...]:
        if self._recogniser.failing is not None:
            raise self._recogniser.failing
        assert self._began is not None
        return self._recogniser.words_until(self._began - 0.02, self._began + self._fed / RATE + 0.02)

    def step(self, cancelled: Callable[[], bool]) -> Partial:
        words = self._words()
        return Partial(words[:-1], words[-1].text if words else "")

    def finish(self, cancelled: Callable[[], bool]) -> Transcript:
        words = self._words()
        return Transcript("".join(word.text for word in words).strip(), words, self._fed / RATE)


class Detector:
    """Says for each pause, in order, how complete the turn sounds; the last answer is repeated."""

    def __init__(self, *answers: float) -> None:
        self._answers = list(answers or (0.99,))
        self.asked = 0

    def probability(self, audio: np.ndarray) -> float:
        self.asked += 1
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


class Parrot:
    """A language stage whose reply is a function of the last caller message; one token a word."""

    def __init__(self, reply: Callable[[str], str] | None = None) -> None:
        self._reply = reply or (lambda text: f"You said {text.strip('.?! ')}. Is there more?")
        self.prompts: list[list[Message]] = []
        self.drafts: list[tuple[int, ...]] = []
        self.failing: Exception | None = None
        self.reason: Literal["eos", "length"] = "eos"
        self.open_conversations = 0

    def open(
        self,
        *,
        tenant: str = "",
        sentences: SentencePolicy = WHOLE_SENTENCES,
        verification: Verification = "coupled",
    ) -> Parrot:
        self.open_conversations += 1
        return self

    def close(self) -> None:
        self.open_conversations -= 1

    def learn(self, text: str) -> None:
        """Nothing to learn."""

    def prefill(self, messages: Sequence[Message], cancelled: Callable[[], bool]) -> int:
        return 0

    def reply(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        *,
        draft: Sequence[int] = (),
        cancelled: Callable[[], bool],
    ) -> Iterator[ReplyEvent]:
        if self.failing is not None:
            raise self.failing
        self.prompts.append(list(messages))
        self.drafts.append(tuple(draft))
        text = self._reply(messages[-1].text)
        said, sentence, index = "", "", 0
        ids: list[int] = []
        tokens = [word + " " for word in text.split(" ")]
        tokens[-1] = tokens[-1][:-1]
        for number, token in enumerate(tokens):
            if cancelled():
                yield Finished("cancelled", tuple(ids), said, ReplyStats())
                return
            said += token
            sentence += token
            ids.append(hash_of(token))
            yield Delta(token)
            if token.strip()[-1:] in ".?!" or number == len(tokens) - 1:
                yield Sentence(index, sentence)
                index, sentence = index + 1, ""
        yield Finished(self.reason, tuple(ids), said, ReplyStats())


def hash_of(token: str) -> int:
    """A stable id for a word."""
    return zlib.crc32(token.encode()) % 100_000


class SlowReader:
    """A voice of constant tempo: CHARACTER_SECONDS a character, in chunks of 40 ms, every word timed."""

    name = "slow-reader"
    sample_rate = VOICE_RATE

    def __init__(self) -> None:
        self.said: list[str] = []
        self.failing: Exception | None = None

    def warm_up(self) -> None:
        """Nothing to warm."""

    def synthesise(self, text: str, *, cancelled: Callable[[], bool]) -> Iterator[VoiceChunk]:
        if self.failing is not None:
            raise self.failing
        self.said.append(text)
        total = round(len(text) * CHARACTER_SECONDS * VOICE_RATE)
        words = []
        position = 0
        for word in text.split():
            position = text.index(word, position)
            end = position + len(word)
            words.append(WordTiming(position, end, position * CHARACTER_SECONDS, end * CHARACTER_SECONDS))
            position = end
        step = VOICE_RATE // 25
        for start in range(0, total, step):
            if cancelled():
                return
            here = tuple(w for w in words if start <= w.start * VOICE_RATE < start + step)
            yield VoiceChunk(BREATH[: min(step, total - start)].copy(), here)


class RecordingPeer:
    """Keeps every event with its time; may vanish, or stop reading."""

    def __init__(self, *, holds_playback: bool = True) -> None:
        self.holds_playback = holds_playback
        self.events: list[tuple[float, CallEvent]] = []
        self.gone_at: float | None = None

    async def send(self, event: CallEvent) -> None:
        now = asyncio.get_running_loop().time()
        if self.gone_at is not None and now >= self.gone_at:
            raise PeerGone("gone")
        self.events.append((now, event))

    def of(self, *kinds: type) -> list[Any]:
        return [event for _, event in self.events if isinstance(event, kinds)]

    def times(self, *kinds: type) -> list[float]:
        return [at for at, event in self.events if isinstance(event, kinds)]

    def audio_seconds(self, reply_id: str | None = None) -> float:
        chunks: list[ReplyAudio] = self.of(ReplyAudio)
        return sum(e.samples.size / e.rate for e in chunks if reply_id is None or e.reply_id == reply_id)


QUIET = Silence(after_seconds=1000.0)


@dataclass
class Scene:
    """A call with fakes, in virtual time. `speech` lists when the caller is audible, in seconds; what is
    `lost` on the way is never heard."""

    speech: list[tuple[float, float]]
    words: list[tuple[str, float]]
    seconds: float = 12.0
    detector: Detector = field(default_factory=Detector)
    language: Parrot = field(default_factory=Parrot)
    voice: SlowReader = field(default_factory=SlowReader)
    agent: Agent = field(default_factory=lambda: Agent(name="test", persona="Be brief.", silence=QUIET))
    speculate: bool = True
    no_draft_because: Callable[[], str | None] = lambda: None
    hearing: RecognitionStage | None = None
    vad: VoiceActivityStage = field(default_factory=LevelVad)
    peer: RecordingPeer = field(default_factory=RecordingPeer)
    stage_seconds: dict[str, float] = field(default_factory=dict)
    actions: list[tuple[float, Callable[[Call], None]]] = field(default_factory=list)
    packet_seconds: float = 0.02
    jitter_seconds: float = 0.0
    late_seconds: Callable[[float], float] = lambda at: 0.0
    sends_until: float = 1e9
    lost: tuple[float, float] = (0.0, 0.0)
    records: list[TurnRecord] = field(default_factory=list)

    async def play(self) -> Call:
        """Run the call to the end of `seconds`, then hang up."""
        loop = asyncio.get_running_loop()
        recogniser = ScriptedRecogniser(Script(self.words), loop.time)
        self.recogniser = recogniser
        stages = Stages(
            workers=InlineWorkers(self.stage_seconds),  # type: ignore[arg-type]
            vad=self.vad,
            recogniser=recogniser if self.hearing is None else self.hearing,
            end_of_turn=self.detector,
            language=self.language,
            voice=self.voice,
            speculate=self.speculate,
            no_draft_because=self.no_draft_because,
        )
        call = Call(stages, self.agent, self.peer, record=self.records.append)
        running = asyncio.ensure_future(call.run())
        acting = asyncio.ensure_future(self._act(call))
        packet = round(self.packet_seconds * RATE)
        sent, late = 0, np.random.default_rng(0)
        while sent / RATE < self.seconds and not running.done():
            due = sent / RATE + self.packet_seconds + self.jitter_seconds * late.random()
            due += self.late_seconds(sent / RATE)
            await asyncio.sleep(due - loop.time())
            audio = self.microphone((sent + np.arange(packet)) / RATE)
            if sent / RATE < self.sends_until and not self.lost[0] <= sent / RATE < self.lost[1]:
                call.hear(audio)
            sent += packet
        call.hang_up()
        await running
        acting.cancel()
        await asyncio.wait({acting})
        return call

    def microphone(self, times: np.ndarray) -> np.ndarray:
        """The caller's audio at these times, in seconds since the call began."""
        level = np.zeros(times.size, np.float32)
        for start, end in self.speech:
            level[(times >= start) & (times < end)] = 1.0
        return level

    async def _act(self, call: Call) -> None:
        for at, action in sorted(self.actions, key=lambda pair: pair[0]):
            await asyncio.sleep(at - asyncio.get_running_loop().time())
            action(call)


HELLO = [(" What", 1.2), (" time", 1.5), (" is", 1.7), (" it?", 2.0)]


def question(**changes: object) -> Scene:
    """The caller asks one question from 1.0 to 2.0 s."""
    return Scene(**{"speech": [(1.0, 2.0)], "words": HELLO, "seconds": 9.0} | changes)  # type: ignore[arg-type]


def agent(**changes: object) -> Agent:
    return Agent(**{"name": "test", "persona": "Be brief.", "silence": QUIET} | changes)  # type: ignore[arg-type]


def interrupted(text: list[tuple[str, float]], speech: tuple[float, float], **changes: object) -> Scene:
    """The agent answers at about 2.4 s for 2.4 s; the caller speaks over it."""
    return question(speech=[(1.0, 2.0), speech], words=[*HELLO, *text], seconds=14.0, **changes)
