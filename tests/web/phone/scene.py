"""Telephone calls with fakes, in virtual time: a simulated carrier, the bridge, a call of exact schedule."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from pipeline.agent import Agent, AgentError
from pipeline.audio import Audio
from pipeline.call import Call
from pipeline.events import Peer
from pipeline.service import CallsBusy, RunningCalls
from pipeline.stages import Stages
from pipeline.telemetry.timeline import TurnRecord
from tests.pipeline.fakes import (
    QUIET,
    RATE,
    Detector,
    InlineWorkers,
    LevelVad,
    Parrot,
    Script,
    ScriptedRecogniser,
    SlowReader,
)
from web.phone.asterisk import Asterisk
from web.phone.bridge import PhoneFrontEnd
from web.phone.plivo import Plivo
from web.phone.simulator.call import SimulatedCall
from web.phone.simulator.carriers import SHAPES
from web.phone.simulator.line import MemoryLine, Network
from web.phone.simulator.shape import Dialled, Shape
from web.phone.telnyx import Telnyx
from web.phone.twilio import Twilio
from web.phone.vonage import Vonage
from web.phone.wire import Carrier, Started
from web.switchboard import Switchboard

CARRIERS: dict[str, type[Carrier]] = {
    "twilio": Twilio,
    "telnyx": Telnyx,
    "plivo": Plivo,
    "vonage": Vonage,
    "asterisk": Asterisk,
}


class FakeService:
    """A service whose calls run on scripted stages."""

    ready = True

    def __init__(self, stages: Stages, agent: Agent, busy: bool = False) -> None:
        self.stages = stages
        self.agent = agent
        self.settings = SimpleNamespace(max_calls=0 if busy else 4)
        self.running = RunningCalls()
        self.opened: list[Call] = []
        self.asked: list[dict[str, Any]] = []
        self.records: list[TurnRecord] = []

    @contextlib.contextmanager
    def line(
        self,
        peer: Peer,
        *,
        agent: str | None = None,
        origin: str = "web",
        caller: str | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> Iterator[Call]:
        if len(self.running) >= self.settings.max_calls:
            raise CallsBusy(f"all {self.settings.max_calls} lines are busy (max_calls)")
        if agent not in (None, self.agent.name):
            raise AgentError(f"there is no agent {agent!r}")
        self.asked.append(
            {"agent": agent, "origin": origin, "caller": caller, "variables": dict(variables or {})}
        )
        call = Call(
            self.stages,
            self.agent,
            peer,
            origin=origin,
            caller=caller,
            variables=variables,
            record=self.records.append,
            max_seconds=7200,
        )
        self.opened.append(call)
        with self.running.counted(call):
            yield call


@dataclass
class PhoneScene:
    """One telephone call. `speech`: when the caller is audible; `words`: what has been said by when;
    `recordings`: real speech instead (16 kHz), and when it begins; `actions`: what else happens, and when.
    All in seconds."""

    carrier: str = "twilio"
    speech: list[tuple[float, float]] = field(default_factory=list)
    words: list[tuple[str, float]] = field(default_factory=list)
    recordings: list[tuple[float, Audio]] = field(default_factory=list)
    seconds: float = 10.0
    network: Network = field(default_factory=Network)
    agent: Agent = field(default_factory=lambda: Agent(name="test", persona="Be brief.", silence=QUIET))
    detector: Detector = field(default_factory=Detector)
    language: Parrot = field(default_factory=Parrot)
    voice: Any = field(default_factory=SlowReader)
    vad: Any = field(default_factory=LevelVad)
    dialled: Dialled = field(default_factory=Dialled)
    actions: list[tuple[float, Callable[[PhoneScene], None]]] = field(default_factory=list)
    busy: bool = False
    keep: bool = True
    hung_up: list[Started] = field(default_factory=list)

    async def play(self) -> PhoneScene:
        """Run the call until somebody ends it; the caller does after `seconds`."""
        loop = asyncio.get_running_loop()
        recogniser = ScriptedRecogniser(Script(self.words), loop.time)
        stages = Stages(
            workers=InlineWorkers(),  # type: ignore[arg-type]
            vad=self.vad,
            recogniser=recogniser,
            end_of_turn=self.detector,
            language=self.language,
            voice=self.voice,
        )
        self.service = FakeService(stages, self.agent, self.busy)
        switchboard = Switchboard()
        switchboard.service = self.service  # type: ignore[assignment]
        front_end = PhoneFrontEnd(switchboard, hang_up=self._hang_up)
        self.line = MemoryLine(round_trip=self.network.round_trip)
        shape: Shape = SHAPES[self.carrier](self.dialled)
        self.phone = SimulatedCall(shape, self.line.link, network=self.network, keep=self.keep)
        serving = asyncio.create_task(front_end.serve(self.line, CARRIERS[self.carrier]()))
        serving.add_done_callback(lambda _: setattr(self, "served_until", loop.time()))
        acting = asyncio.create_task(self._act())
        self._speak()
        await self.phone.run()
        self.ended_at = loop.time()
        await serving
        acting.cancel()
        await asyncio.wait([acting])
        return self

    @property
    def call(self) -> Call:
        return self.service.opened[0]

    def heard_at(self) -> list[float]:
        """When the caller heard something, by frames of 20 ms."""
        return [one.at for one in self.phone.played]

    def _speak(self) -> None:
        """Levels where there is `speech`, and the recordings, said as one recording of 16 kHz."""
        ends = [end for _, end in self.speech]
        ends += [start + audio.size / RATE for start, audio in self.recordings]
        if not ends:
            return
        said = np.zeros(round(max(ends) * RATE), np.float32)
        for start, end in self.speech:
            said[round(start * RATE) : round(end * RATE)] = 0.9
        for start, audio in self.recordings:
            at = round(start * RATE)
            said[at : at + audio.size] += audio[: said.size - at]
        self.phone.say(said, RATE)

    async def _act(self) -> None:
        todo = [*self.actions, (self.seconds, lambda scene: scene.phone.hang_up())]
        for at, action in sorted(todo, key=lambda pair: pair[0]):
            await asyncio.sleep(at - asyncio.get_running_loop().time())
            action(self)

    async def _hang_up(self, started: Started) -> None:
        self.hung_up.append(started)
