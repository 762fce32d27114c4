"""A language model shared by all calls: weights, tokenizer, drafters' memories, what a pass costs here."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from llm.cache import CallCache
from llm.conversation import Conversation
from llm.draft_gate import PassCosts
from llm.drafters.base import Drafter
from llm.drafters.draft_model import DraftModel, ModelDrafter, check_vocabularies
from llm.drafters.facts import FactDrafter
from llm.drafters.learned.load import DraftHeads, open_draft_heads
from llm.drafters.phrases import PhraseDrafter
from llm.drafters.previous_reply import PreviousReply
from llm.drafters.prompt_lookup import PromptLookup
from llm.drafters.successors import SuccessorDrafter
from llm.drafters.suffix import SuffixDrafter
from llm.drafters.tenant_memory import TenantMemories
from llm.fair_lock import FairLock
from llm.prompt import Message, PromptWriter
from llm.prompt_files import PromptFiles
from llm.reply_stream import Delta, Finished, ReplyEvent, Retracted, Sentence, Thinking
from llm.sampling import Sampling
from llm.sentences import WHOLE_SENTENCES, SentencePolicy
from llm.shared_prompt import shared_prompts
from llm.stats import ReplyStats
from llm.targets.base import Cache, Target
from llm.tie_guard import TieGuard
from llm.tokenizer import Tokenizer
from llm.verify import Verification, verifier

__all__ = [
    "Conversation",
    "Delta",
    "Finished",
    "LanguageModel",
    "Message",
    "ReplyEvent",
    "ReplyStats",
    "Retracted",
    "Sampling",
    "Sentence",
    "Thinking",
]

logger = logging.getLogger(__name__)

FREE_DRAFTERS = ("reply", "answer", "phrase", "suffix", "lookup", "successor")

_WARM_UP_WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16)
_WARM_UP_CONTEXT = 128
_WARM_UP_ROUNDS = 4
_UNMEASURED_COSTS = {1: 1.0, 2: 1.05, 4: 1.2, 8: 1.75, 16: 3.0}


class LanguageModel:
    """Weights and everything else that calls share. Conversations may run side by side from several threads.

    `drafters` names the free ones to use, in the order in which a tie is decided.
    """

    def __init__(
        self,
        target: Target,
        tokenizer: Tokenizer,
        *,
        drafters: Sequence[str] = FREE_DRAFTERS,
        draft_model: Target | None = None,
        heads: DraftHeads | None = None,
        clock: Callable[[], float] = time.perf_counter,
        prompt_files: PromptFiles | None = None,
        draft_prompt_files: PromptFiles | None = None,
    ) -> None:
        """`prompt_files`, `draft_prompt_files`: where prompts that the target and the draft model have read
        are kept for the next start."""
        if unknown := set(drafters) - set(FREE_DRAFTERS):
            raise ValueError(f"unknown drafters {sorted(unknown)}; known: {', '.join(FREE_DRAFTERS)}")
        if tokenizer.size > target.vocabulary:
            raise ValueError(
                f"the tokenizer has {tokenizer.size} tokens, but {target.name} knows {target.vocabulary}: "
                "they are not of one model"
            )
        self.target = target
        self.tokenizer = tokenizer
        self.clock = clock
        self.prompts = PromptWriter(tokenizer, target.context)
        self.pass_costs = PassCosts(_UNMEASURED_COSTS)
        self.tie_guard = TieGuard.of(target)
        self._drafters = tuple(drafters)
        self._heads = heads
        self._draft_model = None if draft_model is None else DraftModel.measured(draft_model, clock)
        self._memories = TenantMemories()
        self._pass_lock = FairLock()
        self._prompts = shared_prompts(target, self._pass_lock, prompt_files)
        self._draft_prompts = (
            None if draft_model is None else shared_prompts(draft_model, self._pass_lock, draft_prompt_files)
        )

    @classmethod
    def load(
        cls,
        path: Path,
        *,
        threads: int = 2,
        context: int = 4096,
        drafters: Sequence[str] = FREE_DRAFTERS,
        draft_model: Path | None = None,
        heads: str = "",
        cache: Path | None = None,
        clock: Callable[[], float] = time.perf_counter,
        progress: Callable[[str], None] = lambda message: None,
    ) -> Self:
        """Load a GGUF file or a Hugging Face folder. Converted files go to `cache`.

        `draft_model` is a smaller model of the same vocabulary; `heads` what `open_draft_heads` takes, empty
        for none. `progress` is told in sentences what is built or packed for the first time. Raises
        `CheckpointError`, `TokenizerError`, `PromptError`, `IncompatibleVocabulary` or `HeadsError`, each
        saying what to do.
        """
        from llm.targets.load import load_target

        tokenizer = Tokenizer.load(path, cache)
        small: Target | None = None
        draft_files: PromptFiles | None = None
        if draft_model is not None:
            check_vocabularies(tokenizer, Tokenizer.load(draft_model, cache))
            small = load_target(draft_model, threads=threads, context=context, cache=cache, progress=progress)
            draft_files = PromptFiles.of(draft_model, small, cache)
        target = load_target(path, threads=threads, context=context, cache=cache, progress=progress)
        return cls(
            target,
            tokenizer,
            drafters=drafters,
            draft_model=small,
            heads=open_draft_heads(heads, path, target, clock) if heads else None,
            clock=clock,
            prompt_files=PromptFiles.of(path, target, cache),
            draft_prompt_files=draft_files,
        )

    def open(
        self,
        *,
        tenant: str = "",
        sentences: SentencePolicy = WHOLE_SENTENCES,
        verification: Verification = "coupled",
    ) -> Conversation:
        """A new call. Calls of one tenant share what their drafters remember and the system messages they
        have read; without a tenant nothing is shared but what `read_prompt` has read.

        `sentences`: how replies are cut into what is voiced at a time. `verification`: the rule of
        `llm.verify` by which drafts are checked; only `coupled` gives the same tokens whatever was drafted.
        Raises `ValueError` for an unknown rule.
        """
        rule = verifier(verification)
        memory = self._memories.of(tenant)
        makers: dict[str, Callable[[], Drafter]] = {
            "reply": PreviousReply,
            "answer": lambda: FactDrafter(self.tokenizer.encode, self.tokenizer.decode),
            "phrase": lambda: PhraseDrafter(memory),
            "suffix": lambda: SuffixDrafter(memory, self.tokenizer.bare),
            "lookup": lambda: PromptLookup(self.tokenizer.bare),
            "successor": SuccessorDrafter,
        }
        shared = None if self._prompts is None else self._prompts.of(tenant)
        cache = CallCache(self.target.open(), self._pass_lock, shared)
        drafters = [makers[name]() for name in self._drafters]
        if self._heads is not None:
            drafters.append(self._heads.open(cache))
        if self._draft_model is not None:
            known = None if self._draft_prompts is None else self._draft_prompts.of(tenant)
            drafters.append(ModelDrafter(self._draft_model, self._pass_lock, known))
        return Conversation(self, cache, drafters, sentences, rule, shared)

    def read_prompt(self, system: str, cancelled: Callable[[], bool]) -> bool:
        """Read an agent's system message, unless that is done: calls of all tenants whose prompts have it, or
        its beginning, then begin with a copy.

        Stops between small chunks once `cancelled()` is true and returns False; asked again, it goes on.
        Raises `PromptError` for a message that leaves no room in the context.
        """
        ids = self.prompts.stable([Message("system", system)]).ids
        readers = filter(None, (self._prompts, self._draft_prompts))
        return all(each.read(ids, cancelled) for each in readers)

    def warm_up(self) -> None:
        """Measure what a pass costs at each width, so that the gate knows what a drafted token costs here."""
        cache = self.target.open()
        try:
            context = min(_WARM_UP_CONTEXT, self.target.context // 2)
            cache.extend([0] * context, 0)
            seconds = self._pass_seconds(cache, context)
        finally:
            cache.close()
        if min(seconds.values()) > 0.0:
            self.pass_costs = PassCosts(seconds)
        logger.info(
            "passes of %s: %s", self.target.name, {w: f"{s * 1e3:.1f} ms" for w, s in seconds.items()}
        )

    def word_ids(self, words: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """The id sequences that spell each word, at the beginning of a text and after a space."""
        return tuple(self.tokenizer.encode(spelled) for word in words for spelled in (word, f" {word}"))

    def _pass_seconds(self, cache: Cache, context: int) -> dict[int, float]:
        """The quickest of several, in turns: at times the machine is busy with something else."""
        quickest = dict.fromkeys(_WARM_UP_WIDTHS, float("inf"))
        for _ in range(_WARM_UP_ROUNDS):
            for width in _WARM_UP_WIDTHS:
                with self._pass_lock.held():
                    before = self.clock()
                    cache.extend([0] * width, width)
                    quickest[width] = min(quickest[width], self.clock() - before)
                cache.truncate(context)
        return quickest
