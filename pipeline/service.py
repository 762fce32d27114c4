"""The running service: stages loaded once, calls that share them, and the log that all of them write."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from asr.end_of_turn import SmartTurn
from asr.recogniser import Recogniser
from asr.vad import SileroVad
from llm.language_model import LanguageModel
from llm.remote import RemoteError
from llm.targets.cpu.build import CompilerMissing
from pipeline import places
from pipeline.agent import Agent, AgentError, choose_agent, find_agents, load_agent
from pipeline.call import Call
from pipeline.config import Settings
from pipeline.events import Peer
from pipeline.language_priority import LanguagePriority
from pipeline.loading.language import is_remote, load_language
from pipeline.loading.prompts import read_prompt
from pipeline.models import catalogue
from pipeline.models.fetch import CacheFull
from pipeline.stages import LanguageStage, Stages
from pipeline.telemetry.latency_log import LatencyLog, LatencyLogError
from pipeline.telemetry.timeline import TurnRecord
from pipeline.workers import CancelToken, Workers
from tts.espeak import EspeakError
from tts.load import load_voice, names_a_server
from tts.phrases import PhraseCache, PreparedVoice
from tts.voice import Voice

log = logging.getLogger("rejoinder")

_REASONS = (
    AgentError,
    catalogue.ArtifactUnavailable,
    catalogue.UnknownArtifact,
    CacheFull,
    LatencyLogError,
    EspeakError,
    RemoteError,
    CompilerMissing,
    OSError,
    ValueError,  # what the stages say of checkpoints, vocabularies and voices that they cannot use
)

Progress = Callable[[str], None]
"""Told what is being loaded, in words for a person."""


class CannotStart(Exception):
    """A stage, an agent or the log cannot be had; the message says which and what to do."""


class CallsBusy(Exception):
    """The limit of concurrent calls is reached; the message says the limit and the setting."""


class Service:
    """Everything that outlives a call. Build it with `start`; `close` ends the calls and what they use."""

    def __init__(
        self,
        settings: Settings,
        agents: Mapping[str, Agent],
        voices: Mapping[str, Voice],
        stages: Stages,
        latency_log: LatencyLog,
    ) -> None:
        """`agents` by name, the default one first; `voices` by agent; `stages` with the default agent's
        voice."""
        self.settings = settings
        self.stages = stages
        self.latency_log = latency_log
        self.ready = True
        self.listeners: list[Callable[[dict[str, Any]], None]] = [latency_log.append]
        self._agents = agents
        self._voices = voices
        self.running = RunningCalls()
        self._stop_reading = CancelToken()
        self._reading: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, settings: Settings, progress: Progress = lambda step: None) -> Service:
        """Load every stage, side by side. Raises CannotStart."""
        try:
            return await cls._start(settings, progress)
        except _REASONS as error:
            raise CannotStart(places.in_words(error)) from error

    @classmethod
    async def _start(cls, settings: Settings, progress: Progress) -> Service:
        agents = _load_agents(settings)
        default = next(iter(agents.values()))
        vad = SileroVad()
        progress("Loading the recogniser, the language model and the voices")
        recogniser, end_of_turn, language, voices = await asyncio.gather(
            asyncio.to_thread(_load_recogniser, settings, default, vad),
            asyncio.to_thread(lambda: SmartTurn(catalogue.path("smart-turn-v3.2"))),
            asyncio.to_thread(_load_language, settings, default, progress),
            asyncio.to_thread(_load_voices, settings, agents),
        )
        service = cls(
            settings,
            agents,
            voices,
            Stages(
                workers=Workers(_threads(settings)),
                vad=vad,
                recogniser=recogniser,
                end_of_turn=end_of_turn,
                language=language,
                voice=voices[default.name],
                speculate=settings.speculate,
                anticipate=settings.anticipate,
                priority=LanguagePriority(settings.max_calls if is_remote(settings) else 1),
                no_draft_because=lambda: service.no_draft_because(),
            ),
            LatencyLog(
                settings.latency_log,
                store_transcripts=settings.store_transcripts,
                mask_callers=settings.mask_caller_numbers,
            ),
        )
        if isinstance(language, LanguageModel):
            service._reading = asyncio.create_task(service._read_prompts(language))
        progress("Ready")
        return service

    def no_draft_because(self) -> str | None:
        """Why work that may be thrown away would delay somebody: `calls`, more of them than cores, or
        `committed`, replies that are waited for and take the language stage. None when it would not."""
        if len(self.running) > (os.cpu_count() or 1):
            return "calls"
        return "committed" if self.stages.priority.taken else None

    @contextmanager
    def line(
        self,
        peer: Peer,
        *,
        agent: str | None = None,
        origin: str = "web",
        caller: str | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> Iterator[Call]:
        """A new call with `peer`, to be run while the context lasts.

        Raises CallsBusy at the limit, AgentError for an unknown name.
        """
        limit = self.settings.max_calls
        if len(self.running) >= limit:
            raise CallsBusy(f"all {limit} lines are busy (max_calls)")
        chosen = next(iter(self._agents.values())) if agent is None else self._choose(agent)
        call = Call(
            replace(self.stages, voice=PhraseCache(self._voices[chosen.name])),
            chosen,
            peer,
            origin=origin,
            caller=caller,
            variables=variables,
            record=self._record,
            max_seconds=self.settings.max_call_seconds,
        )
        with self.running.counted(call):
            yield call

    async def close(self) -> None:
        """End all calls, wait for them, and close what was opened."""
        self.ready = False
        self._stop_reading.cancel()
        self.running.hang_up("shutdown")
        await self.running.over()
        if self._reading is not None:
            await self._reading
        await asyncio.to_thread(self.stages.workers.close)
        await asyncio.to_thread(self.latency_log.close)

    async def _read_prompts(self, language: LanguageModel) -> None:
        """Those of the agents that are not the default one, while no call is running."""

        def stop() -> bool:
            return self._stop_reading() or len(self.running) > 0

        try:
            for agent in self._agents.values():
                while not await asyncio.to_thread(read_prompt, language, agent, stop):
                    if self._stop_reading():
                        return
                    await self.running.over()
        except Exception:
            log.exception("the other agents' prompts are not read ahead")
        finally:
            self._stop_reading.cancel()  # a thread that is still reading has nobody to wait for it

    def _choose(self, name: str) -> Agent:
        """Clients name agents, never files."""
        if name not in self._agents:
            raise AgentError(f"there is no agent {name!r}; there are: {', '.join(sorted(self._agents))}")
        return self._agents[name]

    def _record(self, record: TurnRecord) -> None:
        row = record.as_dict()
        for listener in self.listeners:
            listener(row)


class RunningCalls:
    """The calls that there are, each from its opening until its connection is done with."""

    def __init__(self) -> None:
        self._calls: set[Call] = set()
        self._none = asyncio.Event()
        self._none.set()

    def __len__(self) -> int:
        return len(self._calls)

    @contextmanager
    def counted(self, call: Call) -> Iterator[Call]:
        """Count `call` while the context lasts."""
        self._calls.add(call)
        self._none.clear()
        try:
            yield call
        finally:
            self._calls.discard(call)
            if not self._calls:
                self._none.set()

    def hang_up(self, reason: str) -> None:
        for call in tuple(self._calls):
            call.hang_up(reason)

    async def over(self) -> None:
        """Wait until there are none."""
        await self._none.wait()


def _threads(settings: Settings) -> dict[str, int]:
    """Threads that wait for a stage; how many of them compute at once is the stage's own business."""
    calls = settings.max_calls
    return {"vad": 1, "asr": min(calls, 4), "end_of_turn": 1, "llm": 2 * calls, "tts": 2 * calls}


def _load_recogniser(settings: Settings, agent: Agent, vad: SileroVad) -> Recogniser:
    path = places.expanded(settings.asr_model)
    if not places.exists(path):
        path = catalogue.path(settings.asr_model)
    recogniser = Recogniser(path, threads=settings.asr_threads, language=agent.language, vad=vad)
    recogniser.warm_up()
    return recogniser


def _load_language(settings: Settings, default: Agent, progress: Progress) -> LanguageStage:
    language = load_language(settings, progress)
    if isinstance(language, LanguageModel):
        progress("Reading the agents' prompts")
        read_prompt(language, default, lambda: False)
    return language


def _load_agents(settings: Settings) -> dict[str, Agent]:
    """The default agent, which must load, and all others that do."""
    default = choose_agent(settings.agent, settings.agents_dir)
    agents = {default.name: default}
    for path in find_agents(settings.agents_dir).values():
        try:
            agent = load_agent(path)
        except AgentError as error:
            log.warning("an agent is left out: %s", error)
        else:
            agents.setdefault(agent.name, agent)
    return agents


def _load_voices(settings: Settings, agents: Mapping[str, Agent]) -> dict[str, Voice]:
    """Each agent's voice, with its fixed phrases ready; agents that sound alike share one. Only the default
    agent's voice must load."""
    loaded: dict[str, PreparedVoice] = {}
    voices: dict[str, Voice] = {}
    for name, agent in agents.items():
        spec = agent.voice.spec or settings.voice
        sound = f"{spec} {agent.language} {sorted(agent.voice.pronunciations.items())}"
        try:
            if sound not in loaded:
                loaded[sound] = _load_voice(spec, agent, settings)
        except _REASONS as error:
            if not voices:
                raise
            log.warning("agent %s speaks with the default voice: %s", name, error)
            loaded[sound] = next(iter(loaded.values()))
        if not names_a_server(spec):  # a server is not asked before there is a call, since requests may cost
            loaded[sound].prepare(agent.phrases)
            for phrase in loaded[sound].without_sound:
                if phrase in agent.phrases:
                    log.warning("agent %s: its voice finds nothing to say in %r", name, phrase)
        voices[name] = loaded[sound]
    return voices


def _load_voice(spec: str, agent: Agent, settings: Settings) -> PreparedVoice:
    voice = load_voice(
        spec,
        language=agent.language,
        cache=catalogue.converted(),
        pronunciations=agent.voice.pronunciations,
        api_key=settings.voice_api_key.get_secret_value() if settings.voice_api_key else None,
    )
    voice.warm_up()
    return PreparedVoice(voice)
