"""One call's side of the language model: the cache and the drafters' memory, kept from turn to turn."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Protocol

from llm.cache import CallCache
from llm.draft_gate import DraftGate, PassCosts
from llm.drafters.base import Drafter, ReplyState
from llm.engine import Generation, Pass
from llm.noise import SeededNoise
from llm.processors import Processors
from llm.prompt import Message, PromptWriter
from llm.reply_stream import Finished, ReplyEvent, ReplyStream
from llm.sampling import Sampling
from llm.sentences import SentencePolicy
from llm.shared_prompt import TenantPrompts
from llm.stats import ReplyStats
from llm.targets.base import Target
from llm.tie_guard import TieGuard
from llm.tokenizer import Tokenizer
from llm.verify import Verifier

logger = logging.getLogger(__name__)


class SharedModel(Protocol):
    """What the calls of one language model share (see llm.language_model.LanguageModel)."""

    @property
    def target(self) -> Target: ...

    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def prompts(self) -> PromptWriter: ...

    @property
    def pass_costs(self) -> PassCosts: ...

    @property
    def tie_guard(self) -> TieGuard | None: ...

    @property
    def clock(self) -> Callable[[], float]: ...

    def word_ids(self, words: Sequence[str]) -> tuple[tuple[int, ...], ...]: ...


class Conversation:
    """One call: its key-value cache and its drafters. Used by one thread at a time."""

    def __init__(
        self,
        model: SharedModel,
        cache: CallCache,
        drafters: Sequence[Drafter],
        sentences: SentencePolicy,
        verifier: Verifier,
        shared: TenantPrompts | None = None,
    ) -> None:
        """`shared`: where the prompts that calls share are kept, if the model can share them."""
        self._model = model
        self._sentences = sentences
        self._verifier = verifier
        self._cache = cache
        self._drafters = drafters
        self._shared = shared
        self._offered: Message | None = None
        self._gate = DraftGate(drafters, model.pass_costs, model.target.vocabulary)
        self._replying: Generator[ReplyEvent, Any, Any] | None = None
        self._dropped = 0

    @property
    def cached_tokens(self) -> int:
        """Positions of the key-value cache in use."""
        return len(self._cache)

    def prefill(self, messages: Sequence[Message], cancelled: Callable[[], bool]) -> int:
        """Read this prompt, without the reply's header, into the cache; returns how many new ids were read.

        The last user message may still be growing: its last word is left for later. Stops between chunks
        once `cancelled()` is true. Raises `PromptError`.
        """
        self._abandon_reply()
        ids = self._model.prompts.stable(messages).ids
        read = self._cache.read(ids[self._cache.begin(ids) :], cancelled)
        self._share(messages[0])
        return read

    def reply(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        *,
        draft: Sequence[int] = (),
        cancelled: Callable[[], bool],
        passes: list[Pass] | None = None,
    ) -> Iterator[ReplyEvent]:
        """Answer: deltas and sentences as they come, one `Finished` at the end.

        `draft`: the ids of an earlier revision's reply, checked in the pass that reads the end of the prompt.
        `passes` is filled with every pass as it went. Closing the iterator early, or asking for another
        reply, is a cancellation without the last event. Raises `PromptError`; the iterator raises
        `NonFiniteLogits` where the model's arithmetic is broken.
        """
        self._abandon_reply()
        started = self._model.clock()
        prompt = self._model.prompts.prompt(messages)
        self._tell_dropped(prompt.dropped_messages)
        stats = ReplyStats(
            verification=self._verifier.name,
            started=started,
            prompt_tokens=len(prompt.ids),
            reply_draft_tokens=len(draft),
            dropped_messages=prompt.dropped_messages,
        )
        generation = Generation(
            self._cache,
            self._state(prompt.ids, sampling, tuple(draft), messages, cancelled),
            self._gate,
            self._verifier,
            stats,
            room=min(sampling.max_tokens, self._model.target.context - len(prompt.ids)),
            cancelled=cancelled,
            tie_guard=self._model.tie_guard,
            passes=[] if passes is None else passes,
        )
        reply = ReplyStream(
            generation,
            self._model.tokenizer,
            self._sentences,
            self._model.clock,
            self._remember,
            prompt.opened,
        )
        self._replying = reply.events()
        return self._replying

    def learn(self, text: str) -> None:
        """Give the drafters text that replies may repeat: phrases, the persona. One phrase a line."""
        for line in text.splitlines():
            if ids := self._model.tokenizer.encode(line.strip()):
                for drafter in self._drafters:
                    drafter.learn(ids)

    def close(self) -> None:
        """Free the cache. May be called twice."""
        self._abandon_reply()
        self._cache.close()
        for drafter in self._drafters:
            drafter.close()

    def _share(self, first: Message) -> None:
        """Let other calls of the tenant begin with the system message, once this one has read all of it."""
        if self._shared is None or first.role != "system" or first == self._offered:
            return
        ids = self._model.prompts.stable([first]).ids
        if self._cache.ids[: len(ids)] == ids:
            self._shared.keep(self._cache, len(ids))
            self._offered = first

    def _state(
        self,
        ids: list[int],
        sampling: Sampling,
        previous: Sequence[int],
        messages: Sequence[Message],
        cancelled: Callable[[], bool],
    ) -> ReplyState:
        model = self._model
        bad_words = model.word_ids(sampling.bad_words)
        processors = Processors(sampling, len(ids), model.tokenizer.ends, bad_words)
        noise = SeededNoise(sampling.seed, turn=len(messages))
        purpose = self._verifier.draft_purpose
        return ReplyState(ids, len(ids), processors, noise, purpose, previous, messages[-1].text, cancelled)

    def _tell_dropped(self, messages: int) -> None:
        if messages > self._dropped:
            logger.warning(
                "the call has outgrown the context of %d tokens: its oldest %d messages are left out",
                self._model.target.context,
                messages,
            )
        self._dropped = messages

    def _remember(self, finished: Finished) -> None:
        if finished.reason != "cancelled":
            for drafter in self._drafters:
                drafter.observe(finished.ids)

    def _abandon_reply(self) -> None:
        if self._replying is not None:
            self._replying.close()
            self._replying = None
