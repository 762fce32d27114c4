"""The invariant, path by path: the reply is a function of (prompt, sampling parameters, seed) only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from llm.draft_gate import DraftGate, PassCosts
from llm.drafters.base import Draft, Drafter, ReplyState
from llm.drafters.facts import FactDrafter
from llm.drafters.phrases import PhraseDrafter
from llm.drafters.previous_reply import PreviousReply
from llm.drafters.prompt_lookup import PromptLookup
from llm.drafters.successors import SuccessorDrafter
from llm.drafters.suffix import SuffixDrafter
from llm.drafters.tenant_memory import TenantMemory
from llm.engine import Generation
from llm.processors import Processors
from llm.sampling import Sampling
from tests.llm.harness import Guess, generation, nothing
from tests.llm.toys import random_rows

VOCABULARY = 24
PROMPT = (3, 7, 1, 3, 7, 2, 9, 3, 7)
ROWS = random_rows(VOCABULARY, seed=20, sharpness=2.5, memory=2)
ENDS = frozenset({0})
TOKENS = 96

PROCESSORS = {
    "plain": Sampling(max_tokens=TOKENS),
    "top-k": Sampling(top_k=5, max_tokens=TOKENS),
    "top-p": Sampling(top_p=0.9, max_tokens=TOKENS),
    "min-p": Sampling(min_p=0.1, max_tokens=TOKENS),
    "all cuts": Sampling(top_k=8, top_p=0.8, min_p=0.02, max_tokens=TOKENS),
    "repetition": Sampling(repetition_penalty=1.5, max_tokens=TOKENS),
    "frequency": Sampling(frequency_penalty=0.7, max_tokens=TOKENS),
    "presence": Sampling(presence_penalty=1.5, max_tokens=TOKENS),
    "bias": Sampling(logit_bias={5: 3.0, 6: -50.0, 999: 1.0}, max_tokens=TOKENS),
    "least length": Sampling(min_tokens=40, max_tokens=TOKENS),
    "everything": Sampling(
        top_k=12,
        top_p=0.95,
        repetition_penalty=1.2,
        frequency_penalty=0.3,
        presence_penalty=0.2,
        logit_bias={4: 1.0},
        min_tokens=20,
        max_tokens=TOKENS,
    ),
}
BAD_WORDS = ((8,), (3, 7), (2, 9, 4))


def at_temperature(sampling: Sampling, temperature: float, seed: int = 0) -> Sampling:
    return replace(sampling, temperature=temperature, seed=seed)


def run(sampling: Sampling, guess: Guess = nothing) -> Generation:
    made = generation(ROWS, VOCABULARY, PROMPT, sampling, guess, ends=ENDS, bad_words=BAD_WORDS)
    list(made)
    return made


def guesses(truth: Sequence[int]) -> dict[str, Guess]:
    """Drafters that know the plain run, and ones that are no help at all."""
    random = np.random.default_rng(5)

    def oracle(state: ReplyState, budget: int) -> Draft:
        return Draft(tuple(truth[state.position : state.position + 7]), "oracle")

    def anti_oracle(state: ReplyState, budget: int) -> Draft:
        right = truth[state.position : state.position + 7]
        return Draft(tuple((i + 1) % VOCABULARY for i in right), "anti-oracle")

    def half_right(state: ReplyState, budget: int) -> Draft:
        right = list(truth[state.position : state.position + 7])
        for i in range(3, len(right)):
            right[i] = (right[i] + 1) % VOCABULARY
        return Draft(tuple(right), "half-right")

    def now_and_then(state: ReplyState, budget: int) -> Draft:
        return Draft(oracle(state, budget).ids[: int(random.integers(0, 8))], "now and then")

    return {
        "oracle": oracle,
        "anti-oracle": anti_oracle,
        "half-right": half_right,
        "now and then": now_and_then,
        "random": lambda s, b: Draft(tuple(int(i) for i in random.integers(0, VOCABULARY, 5)), "random"),
        "over-long": lambda s, b: Draft((*truth[s.position :], *([1] * 50)), "over-long"),
        "ends": lambda s, b: Draft((0, *truth[s.position : s.position + 3]), "ends"),
        "past the end": lambda s, b: Draft((*truth[s.position :], 0, 5, 5), "past the end"),
    }


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.3])
@pytest.mark.parametrize("processors", PROCESSORS)
def test_no_drafter_changes_a_token(processors: str, temperature: float) -> None:
    for seed in range(3):
        sampling = at_temperature(PROCESSORS[processors], temperature, seed)
        plain = run(sampling)
        for name, guess in guesses(plain.committed).items():
            drafted = run(sampling, guess)
            assert drafted.committed == plain.committed, name
            assert drafted.ended == plain.ended, name
            assert drafted.cache.ids == drafted.state.ids[: len(drafted.cache)], name
            assert drafted.stats.passes <= plain.stats.passes, name


def test_what_the_scripts_accept() -> None:
    """The scripts do what they are for: matches were forced, and so were mismatches."""
    plain = run(PROCESSORS["plain"])
    known = guesses(plain.committed)
    oracle, anti, half = (run(PROCESSORS["plain"], known[n]) for n in ("oracle", "anti-oracle", "half-right"))
    assert len(plain.committed) > 40
    assert oracle.stats.passes == -(-(len(plain.committed) + (plain.ended == "eos")) // 8)
    assert oracle.stats.acceptance_rate == 1.0
    assert anti.stats.acceptance_rate == 0.0
    assert anti.stats.passes == plain.stats.passes
    assert half.stats.accepted_per_position[:4] == [half.stats.accepted_per_position[0]] * 3


def own_drafters() -> list[Drafter]:
    memory = TenantMemory()
    memory.add_phrase((5, 6, 7, 8))
    memory.add_text(PROMPT * 3)
    facts = FactDrafter(spelled_ids, spelled)
    facts.learn((5, 6, 7, 8, 3, 7))
    return [
        PreviousReply(),
        facts,
        PhraseDrafter(memory),
        SuffixDrafter(memory),
        PromptLookup(),
        SuccessorDrafter(),
    ]


def spelled(ids: Sequence[int]) -> str:
    """A letter an id."""
    return "".join(chr(ord("a") + i) for i in ids)


def spelled_ids(text: str) -> tuple[int, ...]:
    return tuple(ord(letter) - ord("a") for letter in text if "a" <= letter < chr(ord("a") + VOCABULARY))


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize("slope", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("processors", PROCESSORS)
def test_neither_does_the_gate_with_the_real_drafters(
    processors: str, slope: float, temperature: float
) -> None:
    sampling = at_temperature(PROCESSORS[processors], temperature)
    plain = run(sampling)
    costs = PassCosts({1: 1.0, 17: 1.0 + 16 * slope})
    for previous in ((), plain.committed, (*plain.committed[:5], 1, *plain.committed[6:]), (1, 2, 3)):
        drafted = generation(ROWS, VOCABULARY, PROMPT, sampling, ends=ENDS, bad_words=BAD_WORDS)
        drafted.proposer = DraftGate(own_drafters(), costs, VOCABULARY)
        drafted.state.previous, drafted.state.asked = previous, spelled(PROMPT)
        assert tuple(drafted) == plain.committed


def test_a_seed_is_a_reply_and_another_seed_another() -> None:
    hot = Sampling(temperature=1.3, max_tokens=40)
    replies = {run(at_temperature(hot, 1.3, seed)).committed for seed in range(20)}
    assert len(replies) == 20
    assert run(at_temperature(hot, 1.3, 7)).committed == run(at_temperature(hot, 1.3, 7)).committed


def test_processors_see_a_prefix_and_nothing_else() -> None:
    processors = Processors(PROCESSORS["everything"], len(PROMPT), ENDS, BAD_WORDS)
    ids = [*PROMPT, 4, 5, 4, 3]
    row = ROWS(ids).astype(np.float32)
    before = row.copy()
    first, second = processors.distribution(row, ids), processors.distribution(row, ids)
    assert np.array_equal(first.scores, second.scores)
    assert np.array_equal(row, before)
    assert np.array_equal(first.ids, second.ids)
