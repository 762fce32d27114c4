"""The draft gate: how long a draft may be, 0 included, by what it is expected to gain and what it costs.

The expected tokens of a pass with g drafted tokens, each accepted with chance a once those before it were,
are 1 + a + ... + a^g (2211.17192). Their cost is that of a pass over g + 1 rows, measured on this machine at
start-up, plus that of drafting. The gate takes the g with the most expected tokens per second, 0 included.

The chances are learned per call, by drafter and strength of evidence. A free drafter's guess is compared
with what was committed even when it was not checked, so a gate that is closed goes on learning at no cost; a
costly drafter is asked again after a pause that doubles while it goes on losing.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from llm.drafters.base import LONGEST_DRAFT, NOTHING, Draft, Drafter, ReplyState
from llm.noise import Purpose

logger = logging.getLogger(__name__)

_PRIOR_WEIGHT = 3.0
_MEMORY = 0.97
_LATER = 0.85
_LEAST_GAIN = 1.02
_AS_GOOD = 0.97
"""Of the lengths whose rates come this near to the best the longest is taken: a draft that reaches the end
of a sentence saves the pass that would find it."""

_PROBED = 0.2
"""Below this chance of the first token a draft is one row: enough to see whether it gets better."""
_LONGEST_PAUSE = 64


class PassCosts:
    """Seconds of a pass by its number of rows: measured at a few widths, straight lines in between."""

    def __init__(self, seconds: Mapping[int, float]) -> None:
        if not seconds or min(seconds) < 1:
            raise ValueError("pass costs need at least one width, each 1 or more")
        self._widths = sorted(seconds)
        costs = [seconds[w] for w in self._widths]
        # A wider pass never costs less: a measurement that says so caught the machine at something else.
        self._costs = [max(costs[: i + 1]) for i in range(len(costs))]

    def __call__(self, rows: int) -> float:
        place = bisect_left(self._widths, rows)
        if place < len(self._widths) and self._widths[place] == rows:
            return self._costs[place]
        if len(self._widths) == 1:
            return self._costs[0]
        right = min(max(place, 1), len(self._widths) - 1)
        (w0, w1), (c0, c1) = self._widths[right - 1 : right + 1], self._costs[right - 1 : right + 1]
        return c0 + (c1 - c0) * (rows - w0) / (w1 - w0)


@dataclass(slots=True)
class _Chance:
    """A decaying estimate of how often a reached token of a draft is accepted."""

    accepted: float
    judged: float

    @property
    def value(self) -> float:
        return self.accepted / self.judged

    def see(self, accepted: int, rejected: int) -> None:
        decay = _MEMORY ** (accepted + rejected)
        self.accepted = self.accepted * decay + accepted
        self.judged = self.judged * decay + accepted + rejected


@dataclass(slots=True)
class _Chances:
    """Of the first token of a draft, and of one behind an accepted one: the right place is the hard part."""

    first: _Chance
    later: _Chance

    @classmethod
    def begun(cls, confidence: float) -> _Chances:
        later = max(confidence, _LATER)
        return cls(*(_Chance(chance * _PRIOR_WEIGHT, _PRIOR_WEIGHT) for chance in (confidence, later)))

    def see(self, accepted: int, reached: int) -> None:
        """`accepted` tokens of a draft whose first `reached` tokens have an answer."""
        if reached:
            self.first.see(min(accepted, 1), 1 if accepted == 0 else 0)
        if accepted:
            self.later.see(accepted - 1, 1 if accepted < reached else 0)


@dataclass(slots=True)
class _Pause:
    """When to ask a costly drafter again."""

    left: int = 0
    length: int = 1

    def begin(self) -> None:
        self.left = self.length
        self.length = min(2 * self.length, _LONGEST_PAUSE)


class DraftGate:
    """One call's policy of drafting. It decides when something is said, never what."""

    def __init__(
        self,
        drafters: Sequence[Drafter],
        costs: Callable[[int], float],
        vocabulary: int,
        longest: int = LONGEST_DRAFT,
    ) -> None:
        self._free = [d for d in drafters if d.seconds_per_token == 0.0]
        self._costly = [d for d in drafters if d.seconds_per_token > 0.0]
        self._costs = costs
        self._vocabulary = vocabulary
        self._longest = longest
        self._chances: dict[tuple[str, int], _Chances] = {}
        self._pauses: defaultdict[str, _Pause] = defaultdict(_Pause)
        self._guesses: list[Draft] = []

    def draft(self, state: ReplyState, budget: int) -> Draft:
        """The draft to check in the next pass: the most promising one, cut to the length that pays best."""
        self._guesses = []
        longest = min(budget, self._longest)
        if longest < 1:
            return NOTHING
        best, best_rate = NOTHING, _LEAST_GAIN / self._costs(1)
        for drafter in self._free:
            guess = self._ask(drafter, state, longest)
            length, rate = self._best_length(self._chances_of(guess), len(guess.ids))
            if rate > best_rate:
                best, best_rate = guess.cut(length), rate
        if best.ids:
            return best
        for drafter in self._costly:
            if length := self._worth_asking(drafter, longest):
                return self._ask(drafter, state, length)
        return NOTHING

    def learn(self, committed: Sequence[int]) -> None:
        """Compare every guess of this round with the tokens that the pass committed."""
        for guess in self._guesses:
            reached = min(len(guess.ids), len(committed))
            accepted = next((i for i in range(reached) if guess.ids[i] != committed[i]), reached)
            self._chances_of(guess).see(accepted, reached)
        self._guesses = []

    def _ask(self, drafter: Drafter, state: ReplyState, longest: int) -> Draft:
        """A drafter's guess, made fit to be checked. One that fails is not asked again in this call."""
        try:
            guess = drafter.propose(state, longest)
        except Exception:
            logger.exception("drafter %s failed and is off for the rest of the call", drafter.name)
            self._free = [d for d in self._free if d is not drafter]
            self._costly = [d for d in self._costly if d is not drafter]
            return NOTHING
        # An end that was drawn stays: to leave out what was drawn would change the rest's distribution.
        drawn = guess.distributions is not None and state.purpose is Purpose.DRAFT
        fit = 0
        while fit < min(len(guess.ids), longest) and self._checkable(guess.ids[fit], state, drawn=drawn):
            fit += 1
        guess = guess.cut(fit)
        if drafter.seconds_per_token > 0.0:
            guess = replace(guess, evidence=0)  # it is judged as a whole, before it is asked
        if guess.ids:
            self._guesses.append(guess)
        return guess

    def _checkable(self, token: int, state: ReplyState, *, drawn: bool) -> bool:
        """An end is not worth a row: the row before it says already that the reply ends."""
        return 0 <= token < self._vocabulary and (drawn or token not in state.processors.ends)

    def _worth_asking(self, drafter: Drafter, longest: int) -> int:
        """How many tokens to ask a costly drafter for: none while it loses, one now and then to check."""
        chances = self._chances_of(Draft(source=drafter.name))
        length, rate = self._best_length(chances, longest, drafter.seconds_per_token)
        pause = self._pauses[drafter.name]
        if length > 0 and rate > _LEAST_GAIN / self._costs(1):
            pause.length = 1
            return length
        if pause.left > 0:
            pause.left -= 1
            return 0
        pause.begin()
        return 1

    def _best_length(
        self, chances: _Chances, longest: int, seconds_per_token: float = 0.0
    ) -> tuple[int, float]:
        """The draft length with the most expected tokens per second, and that rate."""
        if chances.first.value < _PROBED:
            longest = min(longest, 1)
        expected, survival = 1.0, 1.0
        rates = [1.0 / self._costs(1)]
        for length in range(1, longest + 1):
            survival *= chances.first.value if length == 1 else chances.later.value
            expected += survival
            rates.append(expected / (self._costs(length + 1) + seconds_per_token * length))
        best_rate = max(rates)
        best = rates.index(best_rate)
        while 0 < best < longest and rates[best + 1] > _AS_GOOD * best_rate:
            best += 1
        return best, best_rate

    def _chances_of(self, draft: Draft) -> _Chances:
        strength = draft.evidence if draft.evidence < 4 else 4 * (draft.evidence // 4)
        if (draft.source, strength) not in self._chances:
            self._chances[draft.source, strength] = _Chances.begun(draft.confidence)
        return self._chances[draft.source, strength]
