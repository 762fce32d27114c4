"""The running service: stages loaded once, calls that share them, and the log that all of them write."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
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
        self._lines = _Lines()
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
        progress("Loading the recogniser, the language model and the voices")
        recogniser, end_of_turn, language, voices = await asyncio.gather(
            asyncio.to_thread(_load_recogniser, settings, default),
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
                vad=SileroVad(),
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

    @property
    def calls(self) -> int:
        """Calls that are running."""
        return len(self._lines.calls())

    def no_draft_because(self) -> str | None:
        """Why work that may be thrown away would delay somebody: `calls`, more of them than cores, or
        `committed`, replies that are waited for and take the language stage. None when it would not."""
        if self.calls > (os.cpu_count() or 1):
            return "calls"
        return "committed" if self.stages.priority.taken else None

    def call(
        self,
        peer: Peer,
        *,
        agent: str | None = None,
        origin: str = "web",
        caller: str | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> Call:
        """A new call with `peer`; `run` it. Raises CallsBusy at the limit, AgentError for an unknown name."""
        if self.calls >= self.settings.max_calls:
            raise CallsBusy(f"all {self.settings.max_calls} lines are busy (max_calls)")
        chosen = next(iter(self._agents.values())) if agent is None else self._choose(agent)
        return _CountedCall(
            self._lines,
            replace(self.stages, voice=PhraseCache(self._voices[chosen.name])),
            chosen,
            peer,
            origin=origin,
            caller=caller,
            variables=variables,
            record=self._record,
            max_seconds=self.settings.max_call_seconds,
        )

    async def no_calls(self) -> None:
        """Wait until no call is running."""
        await self._lines.all_free()

    async def close(self) -> None:
        """End all calls, wait for them, and close what was opened."""
        self.ready = False
        self._stop_reading.cancel()
        for call in self._lines.calls():
            call.hang_up("shutdown")
        await self.no_calls()
        if self._reading is not None:
            await self._reading
        await asyncio.to_thread(self.stages.workers.close)
        await asyncio.to_thread(self.latency_log.close)

    async def _read_prompts(self, language: LanguageModel) -> None:
        """Those of the agents that are not the default one, while no call is running."""

        def stop() -> bool:
            return self._stop_reading() or self.calls > 0

        try:
            for agent in self._agents.values():
                while not await asyncio.to_thread(read_prompt, language, agent, stop):
                    if self._stop_reading():
                        return
                    await self.no_calls()
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


class _Lines:
    """The calls that are running."""

    def __init__(self) -> None:
        self._calls: set[Call] = set()
        self._free = asyncio.Event()
        self._free.set()

    def calls(self) -> list[Call]:
        return list(self._calls)

    def take(self, call: Call) -> None:
        self._calls.add(call)
        self._free.clear()

    def give_back(self, call: Call) -> None:
        self._calls.discard(call)
        if not self._calls:
            self._free.set()

    async def all_free(self) -> None:
        await self._free.wait()


class _CountedCall(Call):
    """A call that holds one of the service's lines while it runs."""

    def __init__(self, lines: _Lines, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._lines = lines

    async def run(self) -> None:
        self._lines.take(self)
        try:
            await super().run()
        finally:
            self._lines.give_back(self)


def _threads(settings: Settings) -> dict[str, int]:
    """Threads that wait for a stage; how many of them compute at once is the stage's own business."""
    calls = settings.max_calls
    return {"vad": 1, "asr": min(calls, 4), "end_of_turn": 1, "llm": 2 * calls, "tts": 2 * calls}


def _load_recogniser(settings: Settings, agent: Agent) -> Recogniser:
    path = places.expanded(settings.asr_model)
    if not places.exists(path):
        path = catalogue.path(settings.asr_model)
    recogniser = Recogniser(path, threads=settings.asr_threads, language=agent.language)
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
