"""From a row of logits to the distribution of the next token: a pure function of the ids before it.

A processor that keeps state would count drafted tokens that are never committed, the most repeated bug of
speculative decoding. Here every penalty is worked out from the prefix it is asked about, so a row checked in
a block and the same row alone give the same distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from llm.noise import RESOLUTION, Ids, Scores
from llm.sampling import Sampling
from llm.targets.base import NonFiniteLogits

LogitsRow = npt.NDArray[np.float32]

_LIKELY = 1e-4
"""Tokens with at least this share of the best one's probability."""


@dataclass(frozen=True, slots=True)
class TokenDistribution:
    """The distribution of the next token: softmax(scores) over `ids`, all other ids having probability 0.

    `ids` int64 [n], ascending; `scores` float64 [n], logits over temperature. A greedy choice is one id.
    """

    ids: Ids
    scores: Scores

    def probabilities(self) -> Scores:
        """float64 [n], summing to 1."""
        weights: Scores = np.exp(self.scores - self.scores.max())
        weights /= weights.sum()
        return weights

    def probability(self, token: int) -> float:
        place = int(np.searchsorted(self.ids, token))
        if place == len(self.ids) or self.ids[place] != token:
            return 0.0
        return float(self.probabilities()[place])


@dataclass(frozen=True, slots=True)
class Processors:
    """Everything between logits and distribution, for one reply. `start`: where the reply begins in the ids.

    `bad_words` are id sequences whose last id is forbidden after the others; `ends` are the ids that end a
    reply, held back until `min_tokens`.
    """

    sampling: Sampling
    start: int
    ends: frozenset[int] = frozenset()
    bad_words: tuple[tuple[int, ...], ...] = ()

    def distribution(self, row: LogitsRow, prefix: Sequence[int]) -> TokenDistribution:
        """Of the token after `prefix` (prompt and reply), from its logits float32 [vocabulary].

        Order: logit bias, repetition, frequency and presence penalties, bad words, minimum length,
        temperature, min-p, top-k, top-p. Tokens e**-26 times less likely than the best are left out: the
        noise cannot draw them. Raises `NonFiniteLogits` where no best token exists.
        """
        if self.sampling.temperature == 0.0:
            return _greedy(self.penalised(row, prefix))
        return _filtered(self.scored(row, prefix), self.sampling)

    def scored(self, row: LogitsRow, prefix: Sequence[int]) -> TokenDistribution:
        """The distribution before min-p, top-k and top-p leave tokens out of it, at a temperature above 0."""
        scores = self.penalised(row, prefix).astype(np.float64) / self.sampling.temperature
        best = scores.max()
        if not np.isfinite(best):
            raise NonFiniteLogits(f"language model: the best of {len(scores)} logits is {best}")
        ids = np.flatnonzero(scores >= best - RESOLUTION)
        return TokenDistribution(ids, scores[ids])

    def penalised(self, row: LogitsRow, prefix: Sequence[int]) -> LogitsRow:
        """The logits with bias, penalties and bans; `row` itself where there are none."""
        sampling = self.sampling
        banned = self._banned(prefix)
        counted = sampling.frequency_penalty != 0.0 or sampling.presence_penalty != 0.0
        if not (sampling.logit_bias or sampling.repetition_penalty != 1.0 or counted or banned):
            return row
        logits = row.copy()
        for token, bias in sampling.logit_bias.items():
            if 0 <= token < len(logits):
                logits[token] += bias
        if sampling.repetition_penalty != 1.0:
            seen = np.unique(np.asarray(prefix, np.int64))
            old = logits[seen]
            logits[seen] = np.where(
                old > 0, old / sampling.repetition_penalty, old * sampling.repetition_penalty
            )
        if counted:
            seen, counts = np.unique(np.asarray(prefix[self.start :], np.int64), return_counts=True)
            logits[seen] -= sampling.frequency_penalty * counts + sampling.presence_penalty
        logits[banned] = -np.inf
        return logits

    def _banned(self, prefix: Sequence[int]) -> list[int]:
        banned: list[int] = []
        if len(prefix) - self.start < self.sampling.min_tokens:
            banned.extend(self.ends)
        for word in self.bad_words:
            before = len(word) - 1
            written = prefix[len(prefix) - before :] if before else ()
            if len(prefix) - before >= self.start and tuple(written) == word[:-1]:
                banned.append(word[-1])
        return banned


def _greedy(logits: LogitsRow) -> TokenDistribution:
    best = int(logits.argmax())  # a NaN wins an argmax, so looking at the winner is enough
    if not np.isfinite(logits[best]):
        raise NonFiniteLogits(f"language model: the best of {len(logits)} logits is {logits[best]}")
    return TokenDistribution(np.array([best]), np.zeros(1))


def _filtered(distribution: TokenDistribution, sampling: Sampling) -> TokenDistribution:
    """Min-p, top-k, top-p, in this order. Ties at top-k's limit all stay; ties at top-p's go by id."""
    if sampling.min_p > 0.0:
        distribution = _kept(
            distribution, distribution.scores >= distribution.scores.max() + np.log(sampling.min_p)
        )
    if 0 < sampling.top_k < len(distribution.ids):
        distribution = _kept(
            distribution,
            distribution.scores >= np.partition(distribution.scores, -sampling.top_k)[-sampling.top_k],
        )
    if sampling.top_p < 1.0:
        distribution = _nucleus(distribution, sampling.top_p)
    return distribution


def _nucleus(distribution: TokenDistribution, top_p: float) -> TokenDistribution:
    """The fewest most likely tokens that together have at least `top_p`."""
    weights = np.exp(distribution.scores - distribution.scores.max())
    wanted = top_p * weights.sum()
    likely = np.flatnonzero(weights >= _LIKELY)
    if weights[likely].sum() < wanted:
        likely = np.arange(len(weights))
    # Only the likely ones are sorted: a vocabulary has a hundred thousand of the others.
    order = likely[np.argsort(-weights[likely], kind="stable")]
    mass = np.cumsum(weights[order])
    fewest = 1 + int(np.searchsorted(mass, wanted))
    return _kept(distribution, np.sort(order[:fewest]))


def _kept(distribution: TokenDistribution, chosen: npt.NDArray[np.bool_] | Ids) -> TokenDistribution:
    return TokenDistribution(distribution.ids[chosen], distribution.scores[chosen])
