"""Exactness without statistics: all ways that the draws can go, summed, are the target's own distribution.

And mutants: published mistakes of other implementations, each of which this test must catch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from llm.draft_gate import DraftGate, PassCosts
from llm.drafters.base import Draft, FreeDrafter, ReplyState
from llm.engine import Generation
from llm.noise import Noise, Purpose
from llm.processors import Processors, TokenDistribution
from llm.sampling import Sampling
from llm.verify import Coupled, Rejection, Relaxed, Verdict, Verifier
from tests.llm.harness import BranchingNoise, Guess, drawn, generation, nothing
from tests.llm.toys import random_rows

VOCABULARY = 3
PROMPT = (0, 1)
TARGET = random_rows(VOCABULARY, seed=4, sharpness=1.2, memory=3)
SAMPLINGS = {
    "plain": Sampling(temperature=1.0, max_tokens=3),
    "sharp": Sampling(temperature=0.3, max_tokens=3),
    "hot, cut": Sampling(temperature=1.7, top_k=2, max_tokens=3),
    "nucleus": Sampling(temperature=1.0, top_p=0.8, max_tokens=3),
    "penalised": Sampling(
        temperature=1.0, repetition_penalty=1.6, frequency_penalty=0.9, presence_penalty=0.4, max_tokens=3
    ),
    "greedy": Sampling(max_tokens=3),
}

Joint = dict[tuple[int, ...], float]


def softmax_distribution(ids: Sequence[int], seed: int, sharpness: float) -> TokenDistribution:
    return TokenDistribution(
        np.arange(VOCABULARY), random_rows(VOCABULARY, seed=seed, sharpness=sharpness, memory=1)(ids)
    )


def fixed(*ids: int) -> Guess:
    return lambda state, budget: Draft(ids, "fixed")


def disjoint_support(ids: Sequence[int]) -> TokenDistribution:
    """Certain of the token that the target likes least."""
    return TokenDistribution(np.array([int(TARGET(ids).argmin())]), np.zeros(1))


GUESSES: dict[str, Guess] = {
    "nothing": nothing,
    "fixed": fixed(2, 0),
    "one, mostly wrong": fixed(1),
    "over-long": fixed(0, 1, 2, 0, 1, 2, 0),
    "drawn, unlike the target": drawn(lambda ids: softmax_distribution(ids, 9, 1.5), 2),
    "drawn, sharp": drawn(lambda ids: softmax_distribution(ids, 5, 4.0), 2),
    "drawn, disjoint": drawn(disjoint_support, 2),
}


def joint(
    sampling: Sampling,
    guess: Guess,
    verifier: Verifier,
    *,
    ends: frozenset[int] = frozenset(),
    kind: type[Generation] = Generation,
) -> Joint:
    """The distribution of the whole reply, over every branch of every draw."""
    noise = BranchingNoise()

    def run() -> tuple[int, ...]:
        return tuple(
            generation(
                TARGET,
                VOCABULARY,
                PROMPT,
                sampling,
                guess,
                verifier=verifier,
                noise=noise,
                ends=ends,
                kind=kind,
            )
        )

    distribution: Joint = defaultdict(float)
    for outcome, weight in noise.explore(run):
        distribution[outcome] += weight
    return distribution


def target_joint(sampling: Sampling, ends: frozenset[int] = frozenset()) -> Joint:
    """The same from the target alone: chain rule, no engine and no verifier."""
    processors = Processors(sampling, len(PROMPT), ends)
    distribution: Joint = defaultdict(float)

    def extend(reply: tuple[int, ...], weight: float) -> None:
        if len(reply) == sampling.max_tokens:
            distribution[reply] += weight
            return
        prefix = [*PROMPT, *reply]
        step = processors.distribution(TARGET(prefix).astype(np.float32), prefix)
        for token, p in zip(step.ids, step.probabilities(), strict=True):
            if int(token) in ends:
                distribution[reply] += weight * p
            else:
                extend((*reply, int(token)), weight * p)

    extend((), 1.0)
    return distribution


def difference(a: Joint, b: Joint) -> float:
    return max(abs(a.get(k, 0.0) - b.get(k, 0.0)) for k in {*a, *b})


class Independent(Coupled):
    """Coupled verification does not care where a draft comes from; here it comes from draws of its own."""

    draft_purpose = Purpose.DRAFT


@pytest.mark.parametrize("guess", GUESSES)
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("rule", [Independent(), Rejection()], ids=["coupled", "rejection"])
def test_the_joint_distribution_is_the_targets(rule: Verifier, sampling: str, guess: str) -> None:
    distribution = joint(SAMPLINGS[sampling], GUESSES[guess], rule)
    assert sum(distribution.values()) == pytest.approx(1.0, abs=1e-12)
    assert difference(distribution, target_joint(SAMPLINGS[sampling])) < 1e-12


@pytest.mark.parametrize("rule", [Independent(), Rejection()], ids=["coupled", "rejection"])
@pytest.mark.parametrize("guess", ["fixed", "over-long", "drawn, unlike the target"])
def test_the_joint_distribution_with_an_end_token_and_a_least_length(rule: Verifier, guess: str) -> None:
    ends = frozenset({2})
    for sampling in (
        Sampling(temperature=1.0, max_tokens=3),
        Sampling(temperature=1.0, max_tokens=3, min_tokens=2),
    ):
        distribution = joint(sampling, GUESSES[guess], rule, ends=ends)
        assert difference(distribution, target_joint(sampling, ends)) < 1e-12


@dataclass
class Costly(FreeDrafter):
    """A guess as a drafter that the gate may ask."""

    guess: Guess
    name: str = "costly"
    seconds_per_token: float = 1e-9

    def propose(self, state: ReplyState, budget: int) -> Draft:
        return self.guess(state, budget)


def gated(guess: Guess) -> Guess:
    """What a gate makes of it where a wider pass costs nothing."""
    costs = PassCosts({1: 1.0, 16: 1.0})
    return lambda state, budget: DraftGate([Costly(guess)], costs, VOCABULARY).draft(state, budget)


@pytest.mark.parametrize("rule", [Independent(), Rejection()], ids=["coupled", "rejection"])
@pytest.mark.parametrize("guess", ["fixed", "drawn, unlike the target", "drawn, sharp"])
def test_the_joint_distribution_with_an_end_token_behind_the_gate(rule: Verifier, guess: str) -> None:
    sampling, ends = Sampling(temperature=1.0, max_tokens=3), frozenset({2})
    distribution = joint(sampling, gated(GUESSES[guess]), rule, ends=ends)
    assert difference(distribution, target_joint(sampling, ends)) < 1e-12


def test_relaxed_verification_is_lossy_and_says_so() -> None:
    sampling = SAMPLINGS["plain"]
    distribution = joint(sampling, GUESSES["one, mostly wrong"], Relaxed(threshold=0.05, scale=0.3))
    assert difference(distribution, target_joint(sampling)) > 0.01
    assert "lossy" in Relaxed().name
    assert not Relaxed().lossless


def greedy_draft_with_soft_distribution(state: ReplyState, budget: int) -> Draft:
    """The draft is the most likely token, its stated distribution is not (transformers #32867)."""
    distribution = softmax_distribution(state.ids, 9, 1.5)
    return Draft(
        (int(distribution.ids[distribution.scores.argmax()]),), "greedy", distributions=(distribution,)
    )


class RedrawsFromTarget(Rejection):
    """A rejected token is redrawn from p instead of max(0, p - q)."""

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
        return Verdict(noise.draw(target.ids, target.scores, position, Purpose.RESIDUAL)[0], False)


class RatioUpsideDown(Rejection):
    def judge(
        self,
        target: TokenDistribution,
        position: int,
        drafted: int | None,
        draft: TokenDistribution | None,
        noise: Noise,
    ) -> Verdict:
        if drafted is not None and draft is not None:
            p, q = target.probability(drafted), draft.probability(drafted)
            if p > 0.0 and noise.accepts(min(1.0, q / p), position):
                return Verdict(drafted, True)
        return super().judge(target, position, None, None, noise)


class AcceptsTheFirst(Rejection):
    """The first drafted token is committed unchecked (lattice #243)."""

    def judge(
        self,
        target: TokenDistribution,
        position: int,
        drafted: int | None,
        draft: TokenDistribution | None,
        noise: Noise,
    ) -> Verdict:
        if drafted is not None and position == 0:
            return Verdict(drafted, True)
        return super().judge(target, position, drafted, draft, noise)


class RowOff(Generation):
    """Reads the row before: the recovered token comes from the wrong place (openvino.genai #4190)."""

    def _commit(self, draft, logits, guard):  # type: ignore[no-untyped-def]
        return super()._commit(draft, np.concatenate([logits[:1], logits[:-1]]), guard)


class ForgetsTheDraftInPenalties(Generation):
    """Penalties see the tokens before the block only (sglang #33643)."""

    def _judge(self, row, draft, i):  # type: ignore[no-untyped-def]
        whole = self.state.ids
        self.state.ids = whole[: len(whole) - i]
        try:
            distribution = self.state.processors.distribution(row, self.state.ids)
        finally:
            self.state.ids = whole
        drafted = draft.ids[i] if i < len(draft.ids) else None
        return self.verifier.judge(distribution, self.state.position, drafted, None, self.state.noise)


class RunsPastTheEnd(Generation):
    """The end is looked for in the last token of the block only (transformers #31301)."""

    def _commit(self, draft, logits, guard):  # type: ignore[no-untyped-def]
        ends, self.state.processors = self.state.processors.ends, _without_ends(self.state.processors)
        last = None
        for last in super()._commit(draft, logits, guard):
            yield last
        if last in ends:
            self.ended = "eos"


def _without_ends(processors: Processors) -> Processors:
    return Processors(processors.sampling, processors.start)


MUTANTS: dict[str, Callable[[], float]] = {
    "greedy draft, soft distribution": lambda: _off(
        "plain", greedy_draft_with_soft_distribution, Rejection()
    ),
    "residual not subtracted": lambda: _off("plain", GUESSES["fixed"], RedrawsFromTarget()),
    "residual not subtracted, drawn": lambda: _off("plain", GUESSES["drawn, sharp"], RedrawsFromTarget()),
    "ratio upside down": lambda: _off("plain", GUESSES["drawn, sharp"], RatioUpsideDown()),
    "first token unchecked": lambda: _off("plain", GUESSES["fixed"], AcceptsTheFirst()),
    "row off by one": lambda: _off("plain", GUESSES["fixed"], Rejection(), RowOff),
    "row off by one, coupled": lambda: _off("plain", GUESSES["fixed"], Independent(), RowOff),
    "penalties a block late": lambda: _off(
        "penalised", GUESSES["fixed"], Independent(), ForgetsTheDraftInPenalties
    ),
    "end inside a block": lambda: _off(
        "plain", GUESSES["fixed"], Independent(), RunsPastTheEnd, frozenset({2})
    ),
}


def _off(
    sampling: str,
    guess: Guess,
    rule: Verifier,
    kind: type[Generation] = Generation,
    ends: frozenset[int] = frozenset(),
) -> float:
    wrong = joint(SAMPLINGS[sampling], guess, rule, ends=ends, kind=kind)
    return difference(wrong, target_joint(SAMPLINGS[sampling], ends))


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_of_the_sampler_is_caught(mutant: str) -> None:
    assert MUTANTS[mutant]() > 1e-3
