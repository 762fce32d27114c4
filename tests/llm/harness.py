"""Runs one generation over a toy target with a scripted drafter, and every way that its draws could go."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from llm.cache import CallCache
from llm.drafters.base import NOTHING, Draft, ReplyState
from llm.engine import Generation
from llm.fair_lock import FairLock
from llm.noise import Ids, Noise, Purpose, Scores, SeededNoise
from llm.processors import Processors, TokenDistribution
from llm.sampling import Sampling
from llm.stats import ReplyStats
from llm.tie_guard import TieGuard
from llm.verify import Coupled, Verifier
from tests.llm.toys import Rows, ToyTarget

Guess = Callable[[ReplyState, int], Draft]
"""A drafter as a function of the state and the budget."""


@dataclass
class Scripted:
    """A proposer without a gate: asks every time, cuts to the budget, keeps what it was told."""

    guess: Guess
    told: list[tuple[int, ...]] = field(default_factory=list)

    def draft(self, state: ReplyState, budget: int) -> Draft:
        return self.guess(state, budget).cut(max(0, budget))

    def learn(self, committed: Sequence[int]) -> None:
        self.told.append(tuple(committed))


def nothing(state: ReplyState, budget: int) -> Draft:
    """Plain decoding."""
    return NOTHING


def generation(
    rows: Rows,
    vocabulary: int,
    prompt: Sequence[int],
    sampling: Sampling,
    guess: Guess = nothing,
    *,
    verifier: Verifier | None = None,
    noise: Noise | None = None,
    ends: frozenset[int] = frozenset(),
    bad_words: tuple[tuple[int, ...], ...] = (),
    cancelled: Callable[[], bool] = lambda: False,
    kind: type[Generation] = Generation,
    target: ToyTarget | None = None,
) -> Generation:
    target = target or ToyTarget(rows, vocabulary)
    verifier = verifier or Coupled()
    processors = Processors(sampling, len(prompt), ends, bad_words)
    state = ReplyState(
        list(prompt),
        len(prompt),
        processors,
        noise or SeededNoise(sampling.seed),
        verifier.draft_purpose,
        cancelled=cancelled,
    )
    return kind(
        CallCache(target.open(), FairLock()),
        state,
        Scripted(guess),
        verifier,
        ReplyStats(),
        room=sampling.max_tokens,
        cancelled=cancelled,
        tie_guard=TieGuard.of(target),
    )


def drawn(distributions: Callable[[Sequence[int]], TokenDistribution], length: int) -> Guess:
    """A drafter with a distribution of its own, drawing for the purpose that the rule asks for."""

    def guess(state: ReplyState, budget: int) -> Draft:
        ids: list[int] = []
        used: list[TokenDistribution] = []
        for i in range(min(length, budget)):
            distribution = distributions([*state.ids, *ids])
            ids.append(
                state.noise.draw(distribution.ids, distribution.scores, state.position + i, state.purpose)[0]
            )
            used.append(distribution)
        return Draft(tuple(ids), "drawn", distributions=tuple(used))

    return guess


class BranchingNoise:
    """Takes every possible draw in turn: `explore` runs a function once for each way its draws can go."""

    def __init__(self) -> None:
        self._script: list[int] = []
        self._taken: list[tuple[int, int]] = []
        self.weight = 1.0

    def draw(self, ids: Ids, scores: Scores, position: int, purpose: Purpose) -> tuple[int, float]:
        weights = np.exp(scores - scores.max())
        return int(ids[self._branch(weights / weights.sum())]), float("inf")

    def accepts(self, probability: float, position: int) -> bool:
        if probability >= 1.0:
            return True
        return self._branch(np.array([probability, 1.0 - probability])) == 0

    def _branch(self, probabilities: Scores) -> int:
        choice = self._script[len(self._taken)] if len(self._taken) < len(self._script) else 0
        self._taken.append((choice, len(probabilities)))
        self.weight *= float(probabilities[choice])
        return choice

    def explore(self, run: Callable[[], tuple[int, ...]]) -> Iterator[tuple[tuple[int, ...], float]]:
        """Every outcome with its probability, by depth-first search through the draws."""
        self._script = []
        while True:
            self._taken, self.weight = [], 1.0
            outcome = run()
            yield outcome, self.weight
            script = [choice for choice, _ in self._taken]
            while script and script[-1] + 1 == self._taken[len(script) - 1][1]:
                script.pop()
            if not script:
                return
            script[-1] += 1
            self._script = script


class Queue(deque[threading.Event]):
    """The waiting line of a `FairLock`, which says when somebody has joined it."""

    def __init__(self) -> None:
        super().__init__()
        self.joined = threading.Semaphore(0)

    def append(self, turn: threading.Event) -> None:
        super().append(turn)
        self.joined.release()
