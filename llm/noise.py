"""The randomness of a reply: a pure function of (seed, turn, position, purpose, id), never a stream.

With a stream of random numbers, a speculative run consumes them in another order than a plain run and the
two part ways. Here the number that decides between the tokens at a position is looked up under that
position, so it is the same for every run, however often it is asked for, and whatever was drafted before: the
drafter-invariant coupling of Daliri, Musco and Suresh (arXiv 2408.07978). The generator is SplitMix64's
finaliser (Steele, Lea and Flood 2014) over a counter, as in counter-based generators (Salmon et al. 2011).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]

RESOLUTION = 26.0
"""Scores further than this below the best can never win: 32-bit Gumbel noise spans -3.1 to 22.9."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


class Purpose(IntEnum):
    """What a number is drawn for. Numbers for different purposes are independent of each other."""

    CHOICE = 0
    """The target's own choice; a coupled drafter looks at the same numbers to guess it."""
    DRAFT = 1
    """A drafter's draw that must be independent of the target's (rejection sampling)."""
    ACCEPT = 2
    RESIDUAL = 3


class Noise(Protocol):
    """Where draws come from. Tests replace it to enumerate every possible draw."""

    def draw(self, ids: Ids, scores: Scores, position: int, purpose: Purpose) -> tuple[int, float]:
        """Draw an id from softmax(scores). Returns it and by how much it won against the runner-up."""
        ...

    def accepts(self, probability: float, position: int) -> bool:
        """True with the given probability."""
        ...


@dataclass(frozen=True, slots=True)
class SeededNoise:
    """Noise of one reply. `turn` keeps replies of one call apart although they share a seed."""

    seed: int
    turn: int = 0

    def draw(self, ids: Ids, scores: Scores, position: int, purpose: Purpose) -> tuple[int, float]:
        """The Gumbel-max trick: the argmax of scores plus Gumbel noise is distributed as softmax(scores)."""
        if len(ids) == 1:
            return int(ids[0]), float("inf")
        perturbed = scores - np.log(-np.log(self._uniforms(ids, position, purpose)))
        best = int(perturbed.argmax())
        winner = perturbed[best]
        perturbed[best] = -np.inf
        return int(ids[best]), float(winner - perturbed.max())

    def accepts(self, probability: float, position: int) -> bool:
        return float(self._uniforms(np.zeros(1, np.int64), position, Purpose.ACCEPT)[0]) < probability

    def _uniforms(self, ids: Ids, position: int, purpose: Purpose) -> Scores:
        """Uniform numbers in the open interval (0, 1), one an id: float64 [n]."""
        with np.errstate(over="ignore"):
            key = np.uint64(self.seed & 0xFFFFFFFFFFFFFFFF)
            for part in (self.turn, position, int(purpose)):
                key = _mix(key + _GOLDEN * np.uint64(part + 1))
            bits = _mix(key ^ (ids.astype(np.uint64) + np.uint64(1)) * _GOLDEN)
        uniforms: Scores = ((bits >> np.uint64(32)).astype(np.float64) + 0.5) * 2.0**-32
        return uniforms


def _mix(x: Any) -> Any:
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    return x ^ (x >> np.uint64(31))
