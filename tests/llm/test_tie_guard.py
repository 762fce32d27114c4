"""Targets whose rows depend on their block: what is settled within the tolerance, and what is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm.drafters.base import Draft, ReplyState
from llm.engine import Generation
from llm.noise import Purpose, SeededNoise
from llm.processors import Processors
from llm.sampling import Sampling
from llm.targets.base import NonFiniteLogits
from llm.tie_guard import TieGuard
from llm.verify import Rejection
from tests.llm.harness import Guess, generation, nothing
from tests.llm.toys import ToyCache, ToyTarget, random_rows

VOCABULARY = 24
PROMPT = (3, 7, 1, 3, 7, 2, 9, 3, 7)
ROWS = random_rows(VOCABULARY, seed=20, sharpness=2.5, memory=2)
TOLERANCE = 0.1
GUARD = TieGuard(TOLERANCE)
SAMPLINGS = {
    "greedy": Sampling(),
    "greedy, repetition": Sampling(repetition_penalty=1.8, frequency_penalty=0.3),
    "plain": Sampling(temperature=0.7),
    "top-k": Sampling(temperature=1.3, top_k=3),
    "top-p": Sampling(temperature=1.0, top_p=0.7),
    "min-p": Sampling(temperature=1.0, min_p=0.15),
    "all cuts": Sampling(temperature=1.5, min_p=0.02, top_k=6, top_p=0.8, repetition_penalty=1.3),
}


def choice(processors: Processors, row: npt.NDArray[np.float32], position: int) -> int:
    distribution = processors.distribution(row, PROMPT)
    return SeededNoise(3).draw(distribution.ids, distribution.scores, position, Purpose.CHOICE)[0]


@pytest.mark.parametrize("name", SAMPLINGS)
@settings(max_examples=50)
@given(seed=st.integers(0, 10_000))
def test_no_move_within_the_tolerance_changes_what_is_settled(name: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    # Halves tie often and lie on edges.
    row = (np.round(2 * random.normal(0.0, 1.5, VOCABULARY)) / 2).astype(np.float32)
    processors = Processors(SAMPLINGS[name], 4)
    if not GUARD.is_settled(processors, row, PROMPT, SeededNoise(3), seed):
        return
    expected = choice(processors, row, seed)
    for _ in range(20):
        moves = TOLERANCE * random.choice((-0.4999, 0.0, 0.4999), VOCABULARY)
        assert choice(processors, (row + moves).astype(np.float32), seed) == expected


@pytest.mark.parametrize("name", SAMPLINGS)
def test_most_choices_are_settled(name: str) -> None:
    random = np.random.default_rng(1)
    processors = Processors(SAMPLINGS[name], 4)
    rows = random.normal(0.0, 2.5, (200, VOCABULARY)).astype(np.float32)
    count = sum(GUARD.is_settled(processors, row, PROMPT, SeededNoise(3), i) for i, row in enumerate(rows))
    assert 120 < count < 200


@pytest.mark.parametrize(
    ("name", "logits", "edge"),
    [("top-k", (3.9, 2.6, 1.3, 1.3), 2), ("min-p", (0.0, -1.89, -9.0, -9.0), 1), ("top-p", (0.0, -0.84), 1)],
)
def test_a_winner_on_the_edge_is_not_settled_however_it_leads(
    name: str, logits: tuple[float, ...], edge: int
) -> None:
    """The lead alone says nothing: the winner may be kept in one row and cut off in the other."""
    row = np.full(VOCABULARY, -20.0, np.float32)
    row[: len(logits)] = logits
    processors = Processors(SAMPLINGS[name], 4)
    wins = [position for position in range(1000) if choice(processors, row, position) == edge]
    assert wins
    assert not any(GUARD.is_settled(processors, row, PROMPT, SeededNoise(3), win) for win in wins)


@dataclass
class InexactTarget(ToyTarget):
    """Rows that differ a little from block to block, as most kernels' do, and many near ties."""

    def open(self) -> ToyCache:
        super().open()
        self.caches[-1] = InexactCache(self)
        return self.caches[-1]


class InexactCache(ToyCache):
    def extend(self, ids: Sequence[int], rows: int) -> npt.NDArray[np.float32]:
        # Whole numbers tie often, so that rounding decides unless it is guarded.
        logits = np.round(super().extend(ids, rows))
        if len(ids) > 1:
            random = np.random.default_rng(self.length)
            logits = logits + random.uniform(-TOLERANCE / 2, TOLERANCE / 2, logits.shape)
        return logits.astype(np.float32)


def run(sampling: Sampling, guess: Guess, **more: object) -> Generation:
    inexact = InexactTarget(ROWS, VOCABULARY, exact_rows=False, logit_tolerance=TOLERANCE)
    made = generation(ROWS, VOCABULARY, PROMPT, sampling, guess, ends=frozenset({0}), target=inexact, **more)  # type: ignore[arg-type]
    list(made)
    return made


@pytest.mark.parametrize("name", SAMPLINGS)
def test_near_ties_are_decided_by_a_pass_of_their_own(name: str) -> None:
    guarded = 0
    for seed in range(5):
        sampling = replace(SAMPLINGS[name], seed=seed, max_tokens=96)
        plain = run(sampling, nothing)
        truth = plain.committed

        def oracle(state: ReplyState, budget: int, truth: Sequence[int] = truth) -> Draft:
            return Draft(tuple(truth[state.position : state.position + 7]), "oracle")

        drafted = run(sampling, oracle)
        assert drafted.committed == truth
        assert plain.stats.guard_count <= 1, "a pass of one row is what the guard would run"
        guarded += drafted.stats.guard_count
    assert guarded > 0


@pytest.mark.parametrize("name", ["greedy", "all cuts"])
def test_logits_that_are_no_numbers_are_an_error_here_too(name: str) -> None:
    rows = InexactTarget(
        lambda ids: np.full(VOCABULARY, np.nan), VOCABULARY, exact_rows=False, logit_tolerance=TOLERANCE
    )
    made = generation(rows.rows, VOCABULARY, PROMPT, SAMPLINGS[name], target=rows)
    with pytest.raises(NonFiniteLogits):
        list(made)


def test_a_rule_that_keeps_the_distribution_alone_has_nothing_to_guard() -> None:
    made = run(
        Sampling(temperature=1.0, max_tokens=96),
        lambda state, budget: Draft((1, 2), "two"),
        verifier=Rejection(),
    )
    assert made.stats.guard_count == 0
