"""The rejection rule with its real noise: a chi-square test of two tokens together, Holm-corrected.

Enumeration proves the rule; this shows that the numbers it is fed are independent where they have to be. The
power check shows that the test would see it if they were not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import chisquare

from llm.noise import Noise, Purpose, SeededNoise
from llm.processors import Processors, TokenDistribution
from llm.sampling import Sampling
from llm.verify import Rejection, Verdict
from tests.llm.harness import drawn, generation
from tests.llm.toys import Rows, random_rows

VOCABULARY = 5
PROMPT = (1, 2)
RUNS = 2000
SIGNIFICANCE = 0.01


class OneUniformForAll(SeededNoise):
    """Every acceptance uses the same number: re-seeding before each draw (LLMSpeculativeSampling)."""

    def accepts(self, probability: float, position: int) -> bool:
        return super().accepts(probability, 0)


class DraftSharesTheAcceptance(Rejection):
    """A rejected token is redrawn with the very numbers that drew the draft."""

    def judge(
        self,
        target: TokenDistribution,
        position: int,
        drafted: int | None,
        draft: TokenDistribution | None,
        noise: Noise,
    ) -> Verdict:
        verdict = super().judge(target, position, drafted, draft, noise)
        if drafted is None or verdict.accepted:
            return verdict
        return Verdict(noise.draw(target.ids, target.scores, position, Purpose.DRAFT)[0], False)


@dataclass(frozen=True)
class Case:
    """A target and what is drafted for it."""

    target: Rows
    draft: Rows
    temperature: float = 1.0


def constant(*logits: float) -> Rows:
    return lambda ids: np.array(logits)


TARGET = random_rows(VOCABULARY, seed=3, sharpness=1.0, memory=2)
CASES = (
    Case(TARGET, random_rows(VOCABULARY, seed=8, sharpness=1.0, memory=1)),
    Case(TARGET, random_rows(VOCABULARY, seed=8, sharpness=1.0, memory=1), temperature=0.3),
    Case(TARGET, random_rows(VOCABULARY, seed=8, sharpness=4.0, memory=1)),
    Case(constant(0, 0, 0, 0, 0), constant(2, 0, 0, 0, 0)),
)


def p_value(case: Case, kind: type[SeededNoise] = SeededNoise, rule: Rejection | None = None) -> float:
    sampling = Sampling(temperature=case.temperature, max_tokens=3)
    guess = drawn(lambda ids: TokenDistribution(np.arange(VOCABULARY), case.draft(ids)), 2)
    counts: Counter[tuple[int, ...]] = Counter()
    for seed in range(RUNS):
        made = generation(
            case.target, VOCABULARY, PROMPT, sampling, guess, verifier=rule or Rejection(), noise=kind(seed)
        )
        counts[tuple(made)[:2]] += 1  # the third token is there to have two drafted ones in a pass
    return goodness(counts, expected(case.target, sampling))


def expected(rows: Rows, sampling: Sampling) -> dict[tuple[int, int], float]:
    processors = Processors(sampling, len(PROMPT))
    joint = {}
    first = processors.distribution(rows(PROMPT).astype(np.float32), PROMPT)
    for a, pa in zip(first.ids, first.probabilities(), strict=True):
        ids = (*PROMPT, int(a))
        second = processors.distribution(rows(ids).astype(np.float32), ids)
        for b, pb in zip(second.ids, second.probabilities(), strict=True):
            joint[int(a), int(b)] = float(pa * pb)
    return joint


def goodness(counts: Counter[tuple[int, ...]], joint: dict[tuple[int, int], float]) -> float:
    """Chi-square with rare outcomes pooled to an expected count of at least five."""
    pooled = [0.0, 0.0]
    observed: list[float] = []
    wanted: list[float] = []
    for pair, p in joint.items():
        if p * RUNS >= 5.0:
            observed.append(counts[pair])
            wanted.append(p * RUNS)
        else:
            pooled[0] += counts[pair]
            pooled[1] += p * RUNS
    if pooled[1] > 0.0:
        observed.append(pooled[0])
        wanted.append(pooled[1])
    return float(chisquare(observed, np.array(wanted) * (sum(observed) / sum(wanted))).pvalue)


def holm_rejects(p_values: Sequence[float]) -> bool:
    ordered = sorted(p_values)
    return any(p < SIGNIFICANCE / (len(ordered) - i) for i, p in enumerate(ordered))


def test_two_tokens_have_the_targets_distribution() -> None:
    assert not holm_rejects([p_value(case) for case in CASES])


@pytest.mark.parametrize(
    ("kind", "rule"),
    [(OneUniformForAll, None), (SeededNoise, DraftSharesTheAcceptance())],
    ids=["one uniform for all", "shared numbers"],
)
def test_it_would_see_numbers_that_are_not_independent(
    kind: type[SeededNoise], rule: Rejection | None
) -> None:
    assert holm_rejects([p_value(case, kind, rule) for case in CASES[2:]])
