"""The noise is uniform and keyed; the processors do what the interfaces that they are named after say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from llm.noise import Purpose, SeededNoise
from llm.processors import Processors
from llm.sampling import Sampling
from llm.targets.base import NonFiniteLogits

IDS = np.arange(2000)


def logits(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def distribution(sampling: Sampling, row: np.ndarray, prefix: tuple[int, ...] = (), start: int = 0, **more):  # type: ignore[no-untyped-def]
    return Processors(sampling, start, **more).distribution(row, prefix)


HOT = {"temperature": 1.0}


def test_a_draw_is_a_function_of_its_key() -> None:
    scores = np.zeros(len(IDS))
    draws = {
        SeededNoise(seed, turn).draw(IDS, scores, position, purpose)[0]
        for seed in range(4)
        for turn in range(4)
        for position in range(4)
        for purpose in Purpose
    }
    assert len(draws) > 200, "256 keys, nearly as many different draws"
    again = SeededNoise(3, 1).draw(IDS, scores, 2, Purpose.DRAFT)
    assert SeededNoise(3, 1).draw(IDS, scores, 2, Purpose.DRAFT) == again


def test_a_token_keeps_its_noise_when_others_are_cut() -> None:
    """Top-k may cut losers without changing the winner: what makes coupled drafts agree."""
    noise = SeededNoise(1)
    scores = np.linspace(0.0, 3.0, len(IDS))
    winner, _ = noise.draw(IDS, scores, 0, Purpose.CHOICE)
    some = np.unique([winner, *range(0, 2000, 3)])
    assert noise.draw(IDS[some], scores[some], 0, Purpose.CHOICE)[0] == winner


def test_draws_follow_the_softmax() -> None:
    scores = np.log([0.5, 0.3, 0.15, 0.05])
    counts = np.bincount(
        [SeededNoise(seed).draw(np.arange(4), scores, 0, Purpose.CHOICE)[0] for seed in range(4000)],
        minlength=4,
    )
    assert np.abs(counts / 4000 - np.exp(scores)).max() < 0.03


def test_greedy_takes_the_best_and_the_first_of_equals() -> None:
    assert distribution(Sampling(), logits(0, 2, 2, 1)).ids.tolist() == [1]


def test_top_k_keeps_ties_top_p_the_fewest_and_min_p_the_near() -> None:
    row = logits(*np.log([0.4, 0.3, 0.2, 0.1]))
    assert distribution(Sampling(top_k=2, **HOT), row).ids.tolist() == [0, 1]
    assert distribution(Sampling(top_k=1, **HOT), logits(1, 1, 0)).ids.tolist() == [0, 1]
    assert distribution(Sampling(top_p=0.69, **HOT), row).ids.tolist() == [0, 1]
    assert distribution(Sampling(top_p=0.71, **HOT), row).ids.tolist() == [0, 1, 2]
    assert distribution(Sampling(min_p=0.45, **HOT), row).ids.tolist() == [0, 1, 2]
    assert distribution(Sampling(temperature=1e-4, top_p=0.5), row).ids.tolist() == [0]


def test_penalties_count_what_they_are_named_for() -> None:
    row = logits(2.0, -2.0, 1.0)
    repeated = distribution(Sampling(repetition_penalty=2.0, **HOT), row, (0, 1))
    assert repeated.scores.tolist() == [1.0, -4.0, 1.0], (
        "prompt and reply, positive divided, negative multiplied"
    )
    counted = distribution(
        Sampling(frequency_penalty=0.5, presence_penalty=0.25, **HOT), row, (0, 2, 2, 2), start=1
    )
    assert counted.scores.tolist() == [2.0, -2.0, 1.0 - 1.5 - 0.25], "the reply alone"


def test_bias_bad_words_and_least_length() -> None:
    row = logits(3.0, 2.0, 1.0, 0.0)
    assert distribution(Sampling(logit_bias={3: 9.0, -1: 5.0, 77: 5.0}), row).ids.tolist() == [3]
    assert distribution(Sampling(), row, bad_words=((0,),)).ids.tolist() == [1]
    assert distribution(Sampling(), row, (9, 1), start=1, bad_words=((1, 0),)).ids.tolist() == [1]
    assert distribution(Sampling(), row, (1, 9), start=1, bad_words=((1, 0),)).ids.tolist() == [0]
    ends = frozenset({0})
    assert distribution(Sampling(min_tokens=2), row, (9, 1), start=1, ends=ends).ids.tolist() == [1]
    assert distribution(Sampling(min_tokens=1), row, (9, 1), start=1, ends=ends).ids.tolist() == [0]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
def test_broken_logits_are_an_error(temperature: float, broken: float) -> None:
    row = logits(broken, broken, broken)
    with pytest.raises(NonFiniteLogits):
        distribution(Sampling(temperature=temperature), row)


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -1.0},
        {"top_p": 0.0},
        {"top_k": -1},
        {"min_p": 1.0},
        {"repetition_penalty": 0.0},
        {"frequency_penalty": 3.0},
        {"max_tokens": 0},
        {"min_tokens": 5, "max_tokens": 4},
        {"stop": ("",)},
        {"bad_words": ("",)},
    ],
    ids=str,
)
def test_a_parameter_out_of_range_is_named(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong)).replace("_", "[_ ]").replace("words", "word")):
        Sampling(**wrong)  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-30, 30, width=32), min_size=2, max_size=40),
    st.floats(0.2, 2.0),
    st.integers(0, 10),
    st.floats(0.05, 1.0),
)
@example([0.0, 1e-23], 1.0, 0, 0.5)  # as likely as each other, though not equal
def test_a_distribution_sums_to_one(row: list[float], temperature: float, top_k: int, top_p: float) -> None:
    made = distribution(Sampling(temperature=temperature, top_k=top_k, top_p=top_p), logits(*row))
    assert made.probabilities().sum() == pytest.approx(1.0)
    best = max(row[token] for token in made.ids)
    assert np.exp((best - max(row)) / temperature) == 1.0, "the likeliest is kept, or another as likely"
    assert np.all(np.diff(made.ids) > 0)
