"""One call's use of the language stage: prompt read ahead while the caller speaks, replies drafted one at a
time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from llm.language_model import Sampling
from pipeline.speaking.reply import Reply, StageFailed
from pipeline.turns.turn import Attempt, Turn
from pipeline.workers import CancelToken

if TYPE_CHECKING:
    from pipeline.call import Call


class Drafting:
    """Keeps everybody else off the call's conversation while one uses it."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._in_use = asyncio.Lock()
        self._prefill_token = CancelToken()
        self._sampling = Sampling(**call.agent.sampling.model_dump())

    async def prepare(self) -> None:
        """At the start of a call: what the agent may say by heart, and the prompt as far as it is known."""
        async with self._in_use:
            await self._run(self._call.talk.learn, "\n".join(self._call.agent.facts))
        await self.prefill()

    async def prefill(self, growing: str = "") -> None:
        """Bring the model's cache up to what was said and the caller's words so far, when nothing else uses
        it. Stops, and keeps what was read, when a committed reply needs the language stage."""
        stages = self._call.stages
        if self._in_use.locked() or stages.no_draft_because() is not None:
            return
        async with self._in_use:
            token = self._prefill_token = CancelToken()
            messages = self._call.dialogue.messages(growing.strip())
            await self._run(self._call.talk.prefill, messages, lambda: token() or stages.precedence.taken)

    def stop_prefill(self) -> None:
        """Something better is about to be read."""
        self._prefill_token.cancel()

    def draft(self, turn: Turn, attempt: Attempt) -> Reply:
        """Start making the reply to the attempt's transcript. Nothing of it is sent before commit.

        The reply that an earlier revision drafted, or the answer that this turn cut off before it was heard,
        is offered as its draft.
        """
        assert attempt.transcript is not None
        reply = attempt.reply = self._call.new_reply(turn.timeline, reusable=turn.reusable)
        growing = "" if turn.committed else attempt.transcript.text.strip()
        messages = self._call.dialogue.messages(growing)

        async def generate() -> None:
            async with self._in_use:
                draft = turn.refuted.ids if turn.refuted is not None else ()
                turn.refuted_tokens += len(draft)
                await reply.generate(self._call.talk, messages, self._sampling, draft)

        self._call.start(generate())
        self._call.start(reply.synthesise())
        return reply

    async def _run(self, function: Callable[..., object], *arguments: object) -> None:
        try:
            await self._call.stages.workers.run("llm", function, *arguments)
        except Exception as error:
            raise StageFailed("llm", error) from error
