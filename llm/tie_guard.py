"""The tie guard, where a row's bits depend on its block: whether every row it could be has the same choice.

A target whose rows are not exact says by how much two logits of a row may move against each other, its
`logit_tolerance`. A choice is settled when no such move can change it: the winner leads every token that
might be drawn, and is itself among those that are kept whatever happens at the edges of min-p, top-k and
top-p. What is not settled is decided by a pass of that row alone, which is the row that plain decoding sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from llm.noise import Noise, Purpose, Scores
from llm.processors import LogitsRow, Processors
from llm.sampling import Sampling
from llm.targets.base import Target

Kept = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Which tokens of a distribution a filter keeps for certain, and which it might keep. bool [n] each."""

    sure: Kept
    possible: Kept


@dataclass(frozen=True, slots=True)
class TieGuard:
    """Finds the choices that rounding cannot change. `logit_tolerance`: the target's."""

    logit_tolerance: float

    @classmethod
    def of(cls, target: Target) -> Self | None:
        """None for a target whose rows are exact: there is nothing to guard."""
        tolerance = 0.0 if target.exact_rows else target.logit_tolerance
        return cls(tolerance) if tolerance > 0.0 else None

    def is_settled(
        self, processors: Processors, row: LogitsRow, prefix: Sequence[int], noise: Noise, position: int
    ) -> bool:
        """Whether every row whose logits differ by moves of at most the tolerance makes the choice of `row`.

        `row`: logits float32 [vocabulary] of the token after `prefix`, which is drawn for `position`.
        """
        sampling = processors.sampling
        # A repetition penalty stretches a move as it stretches the logit; the other penalties only add to it.
        stretch = max(sampling.repetition_penalty, 1.0 / sampling.repetition_penalty)
        tolerance = self.logit_tolerance * stretch
        if sampling.temperature == 0.0:
            second, best = np.partition(processors.penalised(row, prefix), -2)[
                -2:
            ]  # NaN counts as the largest
            return bool(best - second > tolerance)
        tolerance /= sampling.temperature
        distribution = processors.scored(row, prefix)
        bounds = _bounds(distribution.scores, sampling, tolerance)
        rivals = np.flatnonzero(bounds.possible)
        token, lead = noise.draw(
            distribution.ids[rivals], distribution.scores[rivals], position, Purpose.CHOICE
        )
        return lead > tolerance and bool(bounds.sure[np.searchsorted(distribution.ids, token)])


def _bounds(scores: Scores, sampling: Sampling, tolerance: float) -> _Bounds:
    """What the filters keep for certain and at most, in their order (see `Processors.distribution`)."""
    bounds = _Bounds(np.ones(len(scores), np.bool_), np.ones(len(scores), np.bool_))
    if sampling.min_p > 0.0:
        limit = scores.max() + np.log(sampling.min_p)
        bounds = _Bounds(scores >= limit + tolerance, scores >= limit - tolerance)
    if 0 < sampling.top_k < len(scores):
        bounds = _most_likely(scores, bounds, sampling.top_k, tolerance)
    if sampling.top_p < 1.0:
        bounds = _nucleus(scores, bounds, sampling.top_p, tolerance)
    return bounds


def _most_likely(scores: Scores, before: _Bounds, top_k: int, tolerance: float) -> _Bounds:
    """A token is kept unless `top_k` others are ahead of it. Those nearer than the tolerance may be."""
    may_be_ahead = np.sort(scores[before.possible])
    are_ahead = np.sort(scores[before.sure])
    at_most = len(may_be_ahead) - np.searchsorted(may_be_ahead, scores - tolerance, "left") - before.possible
    at_least = len(are_ahead) - np.searchsorted(are_ahead, scores + tolerance, "right")
    return _Bounds(before.sure & (at_most < top_k), before.possible & (at_least < top_k))


def _nucleus(scores: Scores, before: _Bounds, top_p: float, tolerance: float) -> _Bounds:
    """A token is kept unless those ahead of it have `top_p` of the mass; a tolerance stretches a ratio of
    masses by its exponential.
    """
    weights = np.exp(scores - scores.max())
    may, must = np.where(before.possible, weights, 0.0), np.where(before.sure, weights, 0.0)
    # Most ahead: all that may be, and of the others only those that must be there.
    ahead = _mass_from(scores, may, scores - tolerance, "left") - may
    others = must.sum() - (_mass_from(scores, must, scores - tolerance, "left") - must)
    at_most = ahead * np.exp(tolerance) < top_p * (ahead * np.exp(tolerance) + others)
    # Least ahead: those that must be, and of the others all that may be there.
    ahead = _mass_from(scores, must, scores + tolerance, "right")
    others = may.sum() - _mass_from(scores, may, scores + tolerance, "right")
    at_least = ahead * np.exp(-tolerance) < top_p * (ahead * np.exp(-tolerance) + others)
    return _Bounds(before.sure & at_most, before.possible & at_least)


def _mass_from(scores: Scores, weights: Scores, limits: Scores, side: str) -> Scores:
    """For each limit, the weight of all scores above it: from it on ("left") or strictly ("right")."""
    order = np.argsort(scores)
    mass = np.concatenate([np.cumsum(weights[order][::-1])[::-1], [0.0]])
    found = np.searchsorted(scores[order], limits, "left" if side == "left" else "right")
    result: Scores = mass[found]
    return result
