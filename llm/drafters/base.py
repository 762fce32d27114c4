"""What every drafter is: a source of guessed next tokens. And what it gets and gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from llm.noise import Noise, Purpose
from llm.processors import Processors, TokenDistribution

LONGEST_DRAFT = 15
"""Drafted tokens in one pass at most: sixteen rows, the widest block that costs are measured for."""


@dataclass(frozen=True, slots=True)
class Draft:
    """Guessed ids. `source`: the drafter's name. `evidence`: its strength (a match's length).

    `confidence` is the drafter's own estimate of the chance that each token is accepted, given that those
    before it were; the gate starts from it and learns. `distributions`: what the ids were drawn from, one an
    id; None where each guess was certain.
    """

    ids: tuple[int, ...] = ()
    source: str = ""
    evidence: int = 0
    confidence: float = 0.5
    distributions: tuple[TokenDistribution, ...] | None = None

    def cut(self, length: int) -> Draft:
        distributions = None if self.distributions is None else self.distributions[:length]
        return Draft(self.ids[:length], self.source, self.evidence, self.confidence, distributions)


NOTHING = Draft()


@dataclass(slots=True)
class ReplyState:
    """What a drafter may look at: the ids of prompt and reply so far, how tokens are drawn, and the noise.

    `ids` grows as tokens are committed; `start` is where the reply begins in it. Drafters never write to it.
    """

    ids: list[int]
    start: int
    processors: Processors
    noise: Noise
    purpose: Purpose = Purpose.CHOICE
    previous: Sequence[int] = field(default=())
    """The reply of an earlier revision of this turn, as a guess at the whole reply."""
    asked: str = ""
    """What the reply answers: the text of the last message."""
    cancelled: Callable[[], bool] = field(default=lambda: False)
    """Whether the reply was cancelled: a drafter that takes a while asks between its steps, and stops."""

    @property
    def position(self) -> int:
        """Index of the next token within the reply: what the noise is keyed by."""
        return len(self.ids) - self.start


class Drafter(Protocol):
    """One source of drafts for one call. Nothing it does can change a reply, only how soon it is there."""

    @property
    def name(self) -> str: ...

    @property
    def seconds_per_token(self) -> float:
        """What drafting one token costs; 0 for those that only look things up."""
        ...

    def propose(self, state: ReplyState, budget: int) -> Draft:
        """Up to `budget` next tokens, possibly none. Called once before each pass at most."""
        ...

    def observe(self, reply: Sequence[int]) -> None:
        """A reply has ended with these ids: remember what is worth it."""
        ...

    def learn(self, ids: Sequence[int]) -> None:
        """Text that replies may repeat: a phrase, a fact of the persona."""
        ...

    def close(self) -> None:
        """Free what the drafter holds."""
        ...


class FreeDrafter:
    """A drafter that costs nothing, learns nothing and holds nothing, for others to build on."""

    seconds_per_token = 0.0

    def observe(self, reply: Sequence[int]) -> None:
        pass

    def learn(self, ids: Sequence[int]) -> None:
        pass

    def close(self) -> None:
        pass
