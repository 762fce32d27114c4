"""The gate: the length that pays, learning from what was not checked, and guesses that must do no harm."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from llm.draft_gate import DraftGate, PassCosts
from llm.drafters.base import LONGEST_DRAFT, NOTHING, Draft, FreeDrafter, ReplyState
from llm.engine import Generation
from llm.noise import SeededNoise
from llm.processors import Processors
from llm.sampling import Sampling
from tests.llm.harness import generation
from tests.llm.toys import random_rows

VOCABULARY = 24
PROMPT = (1, 2, 3)
ROWS = random_rows(VOCABULARY, seed=20, sharpness=2.5)
CHEAP = PassCosts({1: 1.0, 2: 1.02, 8: 1.2, 16: 1.5})
DEAR = PassCosts({1: 1.0, 2: 2.0, 16: 16.0})
TRUTH = tuple(generation(ROWS, VOCABULARY, PROMPT, Sampling(max_tokens=120)))


@dataclass
class Tells(FreeDrafter):
    """Drafts what the plain run says, shifted by `wrong` (0: always right)."""

    name: str = "tells"
    wrong: int = 0
    evidence: int = 3
    seconds_per_token: float = 0.0
    asked: list[int] = field(default_factory=list)

    def propose(self, state: ReplyState, budget: int) -> Draft:
        self.asked.append(budget)
        ids = TRUTH[state.position : state.position + budget]
        return Draft(tuple((i + self.wrong) % VOCABULARY for i in ids), self.name, self.evidence)


@dataclass
class Says(FreeDrafter):
    """Drafts the same ids every time, fit or not."""

    ids: Sequence[int]
    name: str = "says"

    def propose(self, state: ReplyState, budget: int) -> Draft:
        return Draft(tuple(self.ids), self.name)


class Fails(FreeDrafter):
    name = "fails"

    def propose(self, state: ReplyState, budget: int) -> Draft:
        raise RuntimeError("the drafter is broken")


def run(*drafters: FreeDrafter, costs: PassCosts = CHEAP, ends: frozenset[int] = frozenset()) -> Generation:
    made = generation(ROWS, VOCABULARY, PROMPT, Sampling(max_tokens=120), ends=ends)
    made.proposer = DraftGate(drafters, costs, VOCABULARY)
    assert tuple(made) == (TRUTH if not ends else TRUTH[: TRUTH.index(min(ends))])
    return made


def widths(made: Generation) -> list[int]:
    return [len(r.draft.ids) for r in made.passes]


def test_pass_costs_are_lines_between_what_was_measured_and_never_fall() -> None:
    costs = PassCosts({1: 2.0, 4: 5.0, 8: 4.0})
    assert [costs(w) for w in (1, 2, 4, 6, 8, 12)] == [2.0, 3.0, 5.0, 5.0, 5.0, 5.0]
    assert PassCosts({1: 1.0})(9) == 1.0
    assert PassCosts({1: 1.0, 2: 1.5})(4) == pytest.approx(2.5)
    with pytest.raises(ValueError, match="width"):
        PassCosts({})


def test_a_drafter_that_is_always_right_reaches_the_longest_draft() -> None:
    made = run(Tells())
    assert max(widths(made)) == LONGEST_DRAFT
    best = max(len(r.committed) for r in made.passes)
    assert best == LONGEST_DRAFT + 1
    assert made.stats.acceptance_rate == 1.0


def test_a_drafter_that_is_always_wrong_is_soon_not_checked_any_more() -> None:
    made = run(Tells(wrong=1))
    assert max(widths(made)[6:]) <= 1, "a row or none"
    assert max(widths(made)[40:]) == 0
    assert made.stats.passes == len(TRUTH)


@dataclass
class AllOrNothing(Tells):
    """Right as a whole every other time, else wrong from the first token on."""

    def propose(self, state: ReplyState, budget: int) -> Draft:
        self.wrong = len(self.asked) % 2
        return super().propose(state, budget)


def test_a_guess_that_is_right_as_a_whole_or_not_at_all_is_drafted_whole() -> None:
    made = run(AllOrNothing())
    assert min(widths(made)[:10]) >= LONGEST_DRAFT - 2
    assert made.stats.tokens_per_pass > 0.4 * LONGEST_DRAFT


def test_nothing_is_drafted_where_checking_costs_as_much_as_writing() -> None:
    assert sum(widths(run(Tells(wrong=1), costs=DEAR))) == 0


def test_a_closed_gate_goes_on_learning_and_opens_again() -> None:
    """A free drafter's guess is compared with what came, checked or not."""
    drafter = Tells(wrong=1)
    made = generation(ROWS, VOCABULARY, PROMPT, Sampling(max_tokens=120))
    made.proposer = DraftGate([drafter], CHEAP, VOCABULARY)
    for i, _ in enumerate(made):
        if i == 70:
            drafter.wrong = 0
    assert max(widths(made)[40:70]) == 0
    assert max(widths(made)[70:]) > 4


def test_a_costly_drafter_that_loses_is_asked_again_after_longer_and_longer_pauses() -> None:
    drafter = Tells(wrong=1, seconds_per_token=0.3)
    asked = [i for i, width in enumerate(widths(run(drafter))) if width]
    assert 4 <= len(asked) == len(drafter.asked) <= 20
    pauses = [b - a for a, b in itertools.pairwise(asked[-4:])]
    assert pauses == [pauses[0], 2 * pauses[0] - 1, 4 * pauses[0] - 3]


def test_a_costly_drafter_is_not_asked_while_a_free_one_pays() -> None:
    costly = Tells("costly", seconds_per_token=0.1)
    run(Tells(), costly)
    assert len(costly.asked) <= 2


def test_the_better_of_two_free_drafters_is_checked() -> None:
    made = run(Tells("wrong", wrong=1), Tells("right"))
    assert made.stats.accepted["right"] > 80
    assert made.stats.drafted["wrong"] <= LONGEST_DRAFT, "one draft tells"


@pytest.mark.parametrize(
    "ids",
    [(), (VOCABULARY,), (-1, 2), (3, VOCABULARY + 5, 2), tuple(range(20)) * 20, (2**40,)],
    ids=["none", "one past", "negative", "in the middle", "too many", "huge"],
)
def test_ids_that_cannot_be_checked_do_no_harm(ids: tuple[int, ...]) -> None:
    made = run(Says(ids))
    assert all(0 <= i < VOCABULARY for r in made.passes for i in r.draft.ids)
    assert max(widths(made)) <= LONGEST_DRAFT


def test_a_drafter_that_fails_is_off_for_the_rest_and_the_reply_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = run(Fails(), Tells())
    assert made.stats.accepted["tells"] > 80
    assert [r.message for r in caplog.records].count(caplog.records[0].message) == 1
    assert "fails" in caplog.records[0].message


def test_an_end_is_never_drafted_because_the_row_before_says_it() -> None:
    end = TRUTH[30]
    made = run(Tells(), ends=frozenset({end}))
    assert all(end not in r.draft.ids for r in made.passes)


def test_there_is_no_draft_for_the_last_token() -> None:
    state = ReplyState(list(PROMPT), 3, Processors(Sampling(), 3), SeededNoise(0))
    assert DraftGate([Tells()], CHEAP, VOCABULARY).draft(state, 0) is NOTHING
