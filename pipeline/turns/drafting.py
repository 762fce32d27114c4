"""One call's use of the language stage: prompt read ahead while the caller speaks, replies drafted one at a
time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from llm.language_model import Sampling
from pipeline.agent import Agent
from pipeline.dialogue import Dialogue
from pipeline.speaking.reply import Replies, Reply
from pipeline.stages import LanguageSession, StageFailed, Stages
from pipeline.tasks import CallTasks
from pipeline.turns.turn import Revision, Turn
from pipeline.workers import CancelToken


class Drafting:
    """Keeps everybody else off the call's language session while one uses it. Opened by `open`, which comes
    first; `close` after all tasks of the call."""

    def __init__(
        self, *, stages: Stages, agent: Agent, dialogue: Dialogue, replies: Replies, tasks: CallTasks
    ) -> None:
        self._stages = stages
        self._agent = agent
        self._dialogue = dialogue
        self._replies = replies
        self._tasks = tasks
        self._in_use = asyncio.Lock()
        self._prefill_token = CancelToken()
        self._sampling = Sampling(**agent.sampling.model_dump())
        self._session: LanguageSession | None = None

    def open(self) -> None:
        """Take a session of the language stage."""
        agent = self._agent
        self._session = self._stages.language.open(
            tenant=agent.name,
            sentences=agent.sentences.policy(agent.language),
            verification=agent.speculation.verification,
        )

    def close(self) -> None:
        """Give the session back."""
        self._open_session.close()

    async def prepare(self) -> None:
        """At the start of a call: what the agent may say by heart, and the prompt as far as it is known.
        Raises StageFailed."""
        async with self._in_use:
            await self._run(self._open_session.learn, "\n".join(self._agent.facts))
        await self.prefill()

    async def prefill(self, growing: str = "") -> None:
        """Bring the model's cache up to what was said and the caller's words so far, when nothing else uses
        it. Stops, and keeps what was read, when a committed reply needs the language stage. Raises
        StageFailed."""
        stages = self._stages
        if self._in_use.locked() or stages.no_draft_because() is not None:
            return
        async with self._in_use:
            token = self._prefill_token = CancelToken()
            messages = self._dialogue.messages(growing.strip())
            await self._run(self._open_session.prefill, messages, lambda: token() or stages.priority.taken)

    def stop_prefill(self) -> None:
        """Something better is about to be read."""
        self._prefill_token.cancel()

    def draft(self, turn: Turn, revision: Revision) -> Reply:
        """Start making the reply to the revision's transcript. Nothing of it is sent before commit.

        The reply that an earlier revision drafted, or the answer that this turn cut off before it was heard,
        is offered as its draft.
        """
        assert revision.transcript is not None
        reply = revision.reply = self._replies.new(turn.timeline, reusable=turn.reusable)
        growing = revision.transcript.text.strip() if turn.open else ""
        messages = self._dialogue.messages(growing)

        async def generate() -> None:
            async with self._in_use:
                draft = turn.refuted.ids if turn.refuted is not None else ()
                turn.refuted_tokens += len(draft)
                await reply.generate(self._open_session, messages, self._sampling, draft)

        self._tasks.start(generate())
        self._tasks.start(reply.synthesise())
        return reply

    @property
    def _open_session(self) -> LanguageSession:
        assert self._session is not None
        return self._session

    async def _run(self, function: Callable[..., object], *arguments: object) -> None:
        try:
            await self._stages.workers.run("llm", function, *arguments)
        except Exception as error:
            raise StageFailed("llm", error) from error
