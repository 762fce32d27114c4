"""The three rules on a law of three tokens, by hand: what is drawn from which law, and what is kept."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from llm.noise import Ids, Purpose, Scores
from llm.processors import TokenDistribution
from llm.verify import Coupled, Rejection, Relaxed, Verdict, residual, verifier


def law(**shares: float) -> TokenDistribution:
    """`law(t3=0.5, t7=0.5)`: those tokens with those shares."""
    ids = np.array([int(name[1:]) for name in shares], np.int64)
    return TokenDistribution(ids, np.log(np.array(list(shares.values()))))


TARGET = law(t3=0.5, t5=0.3, t7=0.2)


@dataclass
class Told:
    """Draws the token it is told to and keeps what it was asked."""

    choice: int = 5
    accepting: bool = True
    drawn: list[tuple[dict[int, float], int, Purpose]] = field(default_factory=list)
    asked: list[tuple[float, int]] = field(default_factory=list)

    def draw(self, ids: Ids, scores: Scores, position: int, purpose: Purpose) -> tuple[int, float]:
        shares = np.exp(scores) / np.exp(scores).sum()
        self.drawn.append(
            ({int(i): round(float(p), 6) for i, p in zip(ids, shares, strict=True)}, position, purpose)
        )
        return self.choice, 1.0

    def accepts(self, probability: float, position: int) -> bool:
        self.asked.append((round(probability, 6), position))
        return self.accepting


WHOLE = {3: 0.5, 5: 0.3, 7: 0.2}


@pytest.mark.parametrize("rule", [Coupled(), Rejection(), Relaxed()], ids=lambda rule: rule.name)
def test_without_a_draft_every_rule_draws_the_targets_choice(rule: Coupled | Rejection | Relaxed) -> None:
    noise = Told()
    assert rule.judge(TARGET, 11, None, None, noise) == Verdict(5, False)
    assert noise.drawn == [(WHOLE, 11, Purpose.CHOICE)]
    assert noise.asked == []


@pytest.mark.parametrize(("drafted", "accepted"), [(5, True), (3, False)])
def test_coupled_goes_on_while_the_draft_is_the_targets_choice(drafted: int, accepted: bool) -> None:
    noise = Told(choice=5)
    assert Coupled().judge(TARGET, 11, drafted, law(t3=1.0), noise) == Verdict(5, accepted)
    assert noise.drawn == [(WHOLE, 11, Purpose.CHOICE)]


@pytest.mark.parametrize(
    ("drafted", "draft_law", "probability"),
    [
        (3, None, 0.5),  # a draft that was certain
        (7, law(t3=0.2, t7=0.8), 0.25),  # 0.2 / 0.8
        (3, law(t3=0.2, t7=0.8), 1.0),  # likelier than it was drafted: always kept
    ],
)
def test_rejection_keeps_a_draft_by_the_ratio_of_the_laws(
    drafted: int, draft_law: TokenDistribution | None, probability: float
) -> None:
    noise = Told(accepting=True)
    assert Rejection().judge(TARGET, 11, drafted, draft_law, noise) == Verdict(drafted, True)
    assert noise.asked == [(probability, 11)]
    assert noise.drawn == []


@pytest.mark.parametrize(
    ("drafted", "draft_law", "rest"),
    [
        (3, None, {5: 0.6, 7: 0.4}),
        (7, law(t3=0.2, t7=0.8), {3: 0.5, 5: 0.5}),
        (7, law(t3=0.2, t4=0.1, t7=0.7), {3: 0.5, 5: 0.5}),  # token 4 is not in the target's law
    ],
)
def test_rejection_draws_a_refused_draft_again_from_what_is_left(
    drafted: int, draft_law: TokenDistribution | None, rest: dict[int, float]
) -> None:
    noise = Told(choice=5, accepting=False)
    assert Rejection().judge(TARGET, 11, drafted, draft_law, noise) == Verdict(5, False)
    assert noise.drawn == [(rest, 11, Purpose.RESIDUAL)]


def test_rejection_may_keep_what_the_target_hardly_ever_says() -> None:
    noise = Told(accepting=True)
    assert Rejection().judge(law(t3=0.99, t9=0.01), 11, 9, None, noise) == Verdict(9, True)
    assert noise.asked == [(0.01, 11)]


def test_rejection_never_keeps_what_the_target_cannot_say() -> None:
    noise = Told(choice=5, accepting=True)
    assert Rejection().judge(TARGET, 11, 4, law(t4=1.0), noise) == Verdict(5, False)
    assert noise.asked == [], "not even with the noise's leave"


def test_where_nothing_is_left_the_residual_is_the_law_itself() -> None:
    assert residual(TARGET, 3, TARGET) is TARGET
    assert residual(law(t3=0.9, t5=0.05, t7=0.05), 3, None).ids.tolist() == [5, 7], "however little is left"
    certain = law(t3=1.0)
    assert residual(certain, 3, None) is certain


@pytest.mark.parametrize(
    ("threshold", "scale", "drafted", "kept"),
    [
        (0.25, 1.0, 7, False),  # 0.2 is below the threshold
        (0.15, 1.0, 7, True),
        (0.9, 0.8, 3, True),  # exp(-entropy) is 0.357; 0.8 of it is less than 0.5
        (0.9, 0.8, 7, False),  # and more than 0.2
    ],
)
def test_relaxed_keeps_what_is_likely_enough_for_the_laws_entropy(
    threshold: float, scale: float, drafted: int, kept: bool
) -> None:
    noise = Told(choice=5)
    verdict = Relaxed(threshold, scale).judge(TARGET, 11, drafted, None, noise)
    assert verdict == (Verdict(drafted, True) if kept else Verdict(5, False))
    assert noise.drawn == ([] if kept else [(WHOLE, 11, Purpose.CHOICE)])


def test_relaxed_goes_on_when_the_choice_is_the_unlikely_draft() -> None:
    assert Relaxed(0.9, 9.0).judge(TARGET, 11, 7, None, Told(choice=7)) == Verdict(7, True)


def test_relaxed_has_the_published_values() -> None:
    assert (Relaxed().threshold, Relaxed().scale) == (0.09, 0.3)


def test_rules_are_chosen_by_name_and_say_what_they_keep() -> None:
    rules = {name: verifier(name) for name in ("coupled", "rejection", "relaxed")}  # type: ignore[arg-type]
    assert {name: type(rule) for name, rule in rules.items()} == {
        "coupled": Coupled,
        "rejection": Rejection,
        "relaxed": Relaxed,
    }
    assert {name: rule.lossless for name, rule in rules.items()} == {
        "coupled": True,
        "rejection": True,
        "relaxed": False,
    }
    assert {name: rule.pathwise for name, rule in rules.items()} == {
        "coupled": True,
        "rejection": False,
        "relaxed": False,
    }
    assert rules["rejection"].draft_purpose == Purpose.DRAFT
    assert rules["relaxed"].draft_purpose == Purpose.CHOICE
    with pytest.raises(ValueError, match="relaxed is lossy"):
        verifier("greedy")  # type: ignore[arg-type]
