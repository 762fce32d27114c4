"""The decoding loop: draft, verify in one pass, commit token by token, learn.

The invariant that everything around it relies on: for every drafter, draft length, gate and cancel point,
the committed tokens are a function of (prompt, sampling parameters, seed) only. It holds for coupled
verification, because each token is the target's own choice under noise that depends on its position;
`rejection` keeps it in distribution, `relaxed` does not keep it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from llm.cache import CallCache
from llm.drafters.base import Draft, ReplyState
from llm.processors import LogitsRow
from llm.stats import ReplyStats
from llm.targets.base import Logits
from llm.tie_guard import TieGuard
from llm.verify import Verdict, Verifier

Reason = Literal["eos", "stop", "length", "cancelled"]


class Proposer(Protocol):
    """Gives the loop its drafts and is told what was committed: the gate, or a test's script."""

    def draft(self, state: ReplyState, budget: int) -> Draft: ...

    def learn(self, committed: Sequence[int]) -> None: ...


@dataclass(slots=True)
class Pass:
    """One pass as it went: what was drafted, how many of those tokens were accepted, what was committed.

    The committed tokens are the accepted ones and, unless the reply ended there, the target's own one: in the
    place of the first rejected token, or added to a draft accepted whole. `ended`: its own one was the end.
    """

    draft: Draft
    accepted: int = 0
    committed: list[int] = field(default_factory=list)
    ended: bool = False


@dataclass(slots=True)
class Generation:
    """One reply being generated. Iterating gives the committed ids, one by one, without the end token.

    It may be abandoned at any token (`close()` of the iterator, or `cancelled` turning true): the cache then
    holds a beginning of the prompt and the committed ids, and nothing else.
    """

    cache: CallCache
    state: ReplyState
    proposer: Proposer
    verifier: Verifier
    stats: ReplyStats
    room: int
    """Most tokens this reply may have: the sampling's limit or what the context leaves."""
    cancelled: Callable[[], bool]
    tie_guard: TieGuard | None = None
    """None where rows are exact."""
    passes: list[Pass] = field(default_factory=list)
    ended: Reason | None = None

    def __iter__(self) -> Generator[int, None, None]:
        ids = self.state.ids
        try:
            while self.ended is None:
                if self.cancelled():
                    self.ended = "cancelled"
                    return
                # Draft. A pass commits one token more than it accepts, so the last one needs no draft.
                draft = self.proposer.draft(self.state, self.room - self.state.position - 1)
                if self.cancelled():  # a draft model may have read a whole prompt meanwhile
                    self.ended = "cancelled"
                    return
                # Verify: what the cache has not read yet and the draft go through the target in one pass.
                before = len(ids)
                block = [*ids[len(self.cache) :], *draft.ids]
                logits = self._pass(block, len(draft.ids) + 1)
                # Commit, token by token, so that an end inside the block is an end.
                guard = self.tie_guard if self.verifier.pathwise and len(block) > 1 else None
                yield from self._commit(draft, logits, guard)
                # Learn, and forget what was rejected. The token committed last is always still to be read.
                self.proposer.learn(ids[before:])
                self.cache.keep_prefix(ids[:-1])
        finally:
            self.cache.keep_prefix(ids)

    @property
    def committed(self) -> tuple[int, ...]:
        """The reply's tokens so far."""
        return tuple(self.state.ids[self.state.start :])

    def retract(self, count: int) -> None:
        """Take back the last `count` tokens, as where a stop string cut the text: ids, cache and figures."""
        for this in reversed(self.passes):
            while count and this.committed:
                if len(this.committed) <= this.accepted:
                    this.accepted -= 1
                    self.stats.discount_accepted(this.draft.source, this.accepted)
                this.committed.pop()
                self.stats.committed_tokens -= 1
                self.state.ids.pop()
                count -= 1
        self.cache.keep_prefix(self.state.ids)

    def _pass(self, block: list[int], rows: int) -> Logits:
        self.stats.passes += 1
        return self.cache.score(block, rows)

    def _commit(self, draft: Draft, logits: Logits, guard: TieGuard | None) -> Iterator[int]:
        this = Pass(draft)
        self.passes.append(this)
        if draft.ids:
            self.stats.count_draft(draft.source, len(draft.ids))
        for i in range(len(draft.ids) + 1):
            if i > 0 and self.cancelled():
                self.ended = "cancelled"
                return
            near_tie = guard is not None and not self._is_settled(guard, logits[i])
            verdict = self._judge(self._row_alone() if near_tie else logits[i], draft, i)
            if verdict.token in self.state.processors.ends:
                this.ended = True
                self.ended = "eos"
                return
            self.state.ids.append(verdict.token)
            this.committed.append(verdict.token)
            self.stats.committed_tokens += 1
            if verdict.accepted:
                this.accepted += 1
                self.stats.count_accepted(draft.source, i, last=i + 1 == len(draft.ids))
            if self.state.position == self.room:
                self.ended = "length"
            yield verdict.token
            if self.ended or near_tie or not verdict.accepted:
                return

    def _row_alone(self) -> LogitsRow:
        """The next token's logits from a pass of one row, which is what plain decoding would have seen."""
        self.stats.guard_count += 1
        self.cache.truncate(len(self.state.ids) - 1)
        row: LogitsRow = self._pass(self.state.ids[-1:], 1)[0]
        return row

    def _judge(self, row: LogitsRow, draft: Draft, i: int) -> Verdict:
        state = self.state
        distribution = state.processors.distribution(row, state.ids)
        drafted = draft.ids[i] if i < len(draft.ids) else None
        draft_distribution = (
            draft.distributions[i] if draft.distributions is not None and drafted is not None else None
        )
        return self.verifier.judge(distribution, state.position, drafted, draft_distribution, state.noise)

    def _is_settled(self, guard: TieGuard, row: LogitsRow) -> bool:
        state = self.state
        return guard.is_settled(state.processors, row, state.ids, state.noise, state.position)
