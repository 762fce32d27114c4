"""Verification: which token is committed in a drafted one's place, and whether the draft goes on.

Three rules. Each commits exactly one token a row, whatever was drafted:

- `coupled` (the default): the target chooses for itself, with noise that depends on the position alone, and
  the draft goes on while it equals that choice. The reply is then the same tokens as without speculation, for
  every drafter (arXiv 2408.07978). Greedy decoding is the case of a distribution with one token.
- `rejection`: the papers' rule (Leviathan et al. 2211.17192, Chen et al. 2302.01318): keep drafted x with
  probability min(1, p(x)/q(x)), else draw from max(0, p - q) renormalised. The reply has the same
  distribution, not the same tokens.
- `relaxed`: typical acceptance (Cai et al., Medusa, 2401.10774): keep x when p(x) is above a threshold that
  falls with the distribution's entropy. Faster and lossy: the distribution of replies changes. Off unless
  asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from llm.noise import Noise, Purpose
from llm.processors import TokenDistribution

Verification = Literal["coupled", "rejection", "relaxed"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`token` is committed; `accepted` says that it is the drafted one and the draft goes on."""

    token: int
    accepted: bool


class Verifier(Protocol):
    """A rule of verification. `lossless` rules leave the distribution of replies as it is; under a `pathwise`
    rule the reply is the same tokens as without speculation.
    """

    @property
    def name(self) -> str: ...

    @property
    def lossless(self) -> bool: ...

    @property
    def pathwise(self) -> bool: ...

    @property
    def draft_purpose(self) -> Purpose:
        """Which numbers a drafter with a distribution has to draw with under this rule."""
        ...

    def judge(
        self,
        target: TokenDistribution,
        position: int,
        drafted: int | None,
        draft: TokenDistribution | None,
        noise: Noise,
    ) -> Verdict:
        """`drafted` None: there is no draft for this position (the last row of a pass).

        `draft` is the distribution that the drafted token was drawn from; None means that it was certain.
        """
        ...


@dataclass(frozen=True, slots=True)
class Coupled:
    name = "coupled"
    lossless = True
    pathwise = True
    draft_purpose = Purpose.CHOICE

    def judge(
        self,
        target: TokenDistribution,
        position: int,
        drafted: int | None,
        draft: TokenDistribution | None,
        noise: Noise,
    ) -> Verdict:
        token, _ = noise.draw(target.ids, target.scores, position, Purpose.CHOICE)
        return Verdict(token, token == drafted)


@dataclass(frozen=True, slots=True)
class Rejection:
    name = "rejection"
    lossless = True
    pathwise = False
    draft_purpose = Purpose.DRAFT

    def judge(
        self,
        target: TokenDistribution,
        position: int,
        drafted: int | None,
        draft: TokenDistribution | None,
        noise: Noise,
    ) -> Verdict:
        if drafted is None:
            token, _ = noise.draw(target.ids, target.scores, position, Purpose.CHOICE)
            return Verdict(token, False)
        p = target.probability(drafted)
        q = 1.0 if draft is None else draft.probability(drafted)
        if p > 0.0 and noise.accepts(min(1.0, p / q), position):
            return Verdict(drafted, True)
        rest = residual(target, drafted, draft)
        token, _ = noise.draw(rest.ids, rest.scores, position, Purpose.RESIDUAL)
        return Verdict(token, False)


def residual(target: TokenDistribution, drafted: int, draft: TokenDistribution | None) -> TokenDistribution:
    """max(0, p - q), normalised. Where rounding leaves nothing of it, p itself: never a draw among zeros."""
    p = target.probabilities()
    if draft is None:
        q = (target.ids == drafted).astype(np.float64)
    else:
        q = np.zeros_like(p)
        _, ours, theirs = np.intersect1d(target.ids, draft.ids, assume_unique=True, return_indices=True)
        q[ours] = draft.probabilities()[theirs]
    rest = np.maximum(0.0, p - q)
    kept = rest > 0.0
    if not kept.any():
        return target
    return TokenDistribution(target.ids[kept], np.log(rest[kept]))


@dataclass(frozen=True, slots=True)
class Relaxed:
    """Keeps a drafted x with p(x) > min(threshold, scale * exp(-entropy)); Medusa's published values."""

    threshold: float = 0.09
    scale: float = 0.3

    name = "relaxed (lossy)"
    lossless = False
    pathwise = False
    draft_purpose = Purpose.CHOICE

    def judge(
        self,
        target: TokenDistribution,
        position: int,
        drafted: int | None,
        draft: TokenDistribution | None,
        noise: Noise,
    ) -> Verdict:
        if drafted is not None:
            p = target.probabilities()
            entropy = -float((p * np.log(p)).sum())
            if target.probability(drafted) > min(self.threshold, self.scale * float(np.exp(-entropy))):
                return Verdict(drafted, True)
        token, _ = noise.draw(target.ids, target.scores, position, Purpose.CHOICE)
        return Verdict(token, token == drafted)


def verifier(rule: Verification) -> Verifier:
    """The rule of that name. Raises `ValueError` for any other."""
    rules: dict[str, Verifier] = {"coupled": Coupled(), "rejection": Rejection(), "relaxed": Relaxed()}
    if rule not in rules:
        raise ValueError(f"verification {rule!r} is not one of: {', '.join(rules)} (relaxed is lossy)")
    return rules[rule]
