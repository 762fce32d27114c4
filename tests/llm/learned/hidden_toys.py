"""A toy target that hands out hidden states: one-hot codes of the last two ids, which its head looks up."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from llm.sampling import Sampling
from llm.targets.base import Logits
from tests.llm.harness import generation
from tests.llm.toys import ToyCache, ToyTarget, random_rows

VOCABULARY = 12
HIDDEN = VOCABULARY * VOCABULARY
Floats = npt.NDArray[np.float32]


class HiddenToyCache(ToyCache):
    """Keeps the states of the last ids; can also run "its first layer", which sees the last id alone."""

    kept = 0
    last = 0
    peeked: tuple[int, ...] = ()

    def extend(self, ids: Sequence[int], rows: int) -> Logits:
        self.last = min(self.kept, len(ids))
        self.peeked = ()
        return super().extend(ids, rows)

    def keep_hidden(self, most: int) -> None:
        self.kept = most

    def hidden(self, rows: int) -> Floats:
        assert rows <= self.last
        states = np.zeros((rows, HIDDEN), np.float32)
        for row, i in enumerate(range(len(self.ids) - rows, len(self.ids))):
            states[row, VOCABULARY * (self.ids[i - 1] if i else 0) + self.ids[i]] = 1.0
        return states

    def project(self, states: Floats) -> Logits:
        assert isinstance(self._target, HiddenToy)
        logits: Logits = states @ self._target.table
        return logits

    def peek(self, ids: Sequence[int], ahead: int, layers: int) -> Logits:
        assert ahead <= len(self.peeked)
        self.peeked = (*self.peeked[:ahead], *ids)
        seen = (*self.ids, *self.peeked)
        return np.array([self._target.rows(seen if layers > 1 else (0, seen[-1]))], np.float32)


class HiddenToy(ToyTarget):
    hidden_size = HIDDEN
    layers = 3

    @cached_property
    def table(self) -> Floats:
        """The head: a row of logits for every two ids."""
        rows = [self.rows((a, b)) for a in range(VOCABULARY) for b in range(VOCABULARY)]
        return np.array(rows, np.float32)

    def open(self) -> HiddenToyCache:
        return HiddenToyCache(self)

    def embed(self, ids: Sequence[int]) -> Floats:
        return np.eye(VOCABULARY, HIDDEN, dtype=np.float32)[list(ids)]


def hidden_toy() -> HiddenToy:
    return HiddenToy(random_rows(VOCABULARY, seed=6, sharpness=4.0, memory=2), VOCABULARY)


def toy_replies(length: int = 12) -> list[tuple[int, ...]]:
    """The target's own replies to half of the prompts of two ids."""
    toy = hidden_toy()
    return [
        (a, b, *generation(toy.rows, VOCABULARY, (a, b), Sampling(max_tokens=length), target=toy))
        for a in range(VOCABULARY)
        for b in range(0, VOCABULARY, 2)
    ]
