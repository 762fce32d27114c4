"""Prompt lookup decoding (Saxena 2023): what followed the last time the same tokens were there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llm.drafters.base import NOTHING, Draft, FreeDrafter, ReplyState
from llm.drafters.token_index import TokenIndex

SHORTEST_MATCH = 2
CARRIES = 8

Bare = Callable[[int], int | None]
"""From a token that ends a line to the same without the line break; None where it ends none."""


def keeps_line_breaks(token: int) -> int | None:
    """For vocabularies without such tokens."""
    return None


class PromptLookup(FreeDrafter):
    """Drafts from the call's own prompt and the reply so far.

    The longest match of at least two tokens counts; a single token occurs everywhere and says nothing. The
    draft is at most `CARRIES` times as long as its match, as a short one seldom goes on for long. Before
    the first token there is nothing: the template's header matches wherever a reply began.
    """

    name = "lookup"

    def __init__(self, bare: Bare = keeps_line_breaks) -> None:
        self._bare = bare
        self._sequences = TokenIndex()
        self._call = self._sequences.add(())

    def propose(self, state: ReplyState, budget: int) -> Draft:
        self._sequences.follow(self._call, state.ids)
        if state.position == 0:
            return NOTHING
        match = self._sequences.longest_match(state.ids, SHORTEST_MATCH, budget)
        if match is None:
            return NOTHING
        ids = spoken_line(match.continuation[: CARRIES * match.length], self._bare)
        return Draft(ids, self.name, match.length, confidence_of(match.length) * match.share)


def spoken_line(ids: Sequence[int], bare: Bare) -> tuple[int, ...]:
    """A draft up to the end of its line. Facts stand on lines of their own, what is said of them does not:
    where the vocabulary has one token for full stop and line break, the reply has the full stop alone.
    """
    for i, token in enumerate(ids):
        if (plain := bare(token)) is not None:
            return (*ids[:i], plain)
    return tuple(ids)


def confidence_of(match_length: int) -> float:
    """A starting point for the chance of acceptance after a match this long; the gate corrects it."""
    return 1.0 - 1.0 / (1.0 + 0.6 * match_length)
