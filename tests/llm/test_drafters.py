"""Every drafter keeps one contract, and each one drafts what it is there for."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm.cache import PREFILL_CHUNK
from llm.draft_gate import DraftGate, PassCosts
from llm.drafters.base import Drafter, ReplyState
from llm.drafters.draft_model import DraftModel, IncompatibleVocabulary, ModelDrafter, check_vocabularies
from llm.drafters.facts import FactDrafter
from llm.drafters.phrases import PhraseDrafter
from llm.drafters.previous_reply import PreviousReply
from llm.drafters.prompt_lookup import PromptLookup
from llm.drafters.successors import SuccessorDrafter
from llm.drafters.suffix import SuffixDrafter
from llm.drafters.tenant_memory import (
    LONGEST_PHRASE,
    MOST_PHRASES,
    MOST_TENANTS,
    TenantMemories,
    TenantMemory,
)
from llm.drafters.token_index import MOST_OCCURRENCES, TokenIndex
from llm.engine import Generation
from llm.fair_lock import FairLock
from llm.noise import Purpose, SeededNoise
from llm.processors import Processors
from llm.sampling import Sampling
from llm.tokenizer import Tokenizer, Vocabulary
from llm.verify import Coupled, Rejection, Verifier
from tests.llm.contract import proposal
from tests.llm.harness import generation, nothing
from tests.llm.toys import ToyTarget, byte_tokenizer, random_rows

VOCABULARY = 40
ROWS = random_rows(VOCABULARY, seed=2, sharpness=3.0)


TOKENIZER = byte_tokenizer()


def small_model() -> ModelDrafter:
    return ModelDrafter(DraftModel(ToyTarget(ROWS, VOCABULARY), 1e-3), FairLock())


MAKERS: dict[str, Callable[[], Drafter]] = {
    "reply": PreviousReply,
    "phrase": lambda: PhraseDrafter(TenantMemory()),
    "suffix": lambda: SuffixDrafter(TenantMemory()),
    "lookup": PromptLookup,
    "successor": SuccessorDrafter,
    "answer": lambda: FactDrafter(TOKENIZER.encode, TOKENIZER.decode),
    "model": small_model,
}


def state(
    prompt: Sequence[int], reply: Sequence[int] = (), previous: Sequence[int] = (), **sampling: float
) -> ReplyState:
    processors = Processors(Sampling(**sampling), len(prompt))  # type: ignore[arg-type]
    return ReplyState([*prompt, *reply], len(prompt), processors, SeededNoise(0), previous=previous)


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_the_contract(name: str, data: st.DataObject) -> None:
    drafter = MAKERS[name]()
    assert drafter.name == name
    ids = st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=30)
    for taught in data.draw(st.lists(ids, max_size=3)):
        drafter.learn(taught)
        drafter.observe(taught)
    for _ in range(3):
        prompt, reply, budget = data.draw(ids), data.draw(ids), data.draw(st.integers(1, 12))
        proposal(drafter, state(prompt, reply, tuple(data.draw(ids))), budget)
    drafter.close()


def test_lookup_takes_the_longest_match_and_never_a_single_token() -> None:
    prompt = (1, 2, 3, 10, 9, 9, 2, 3, 20, 8, 8)
    lookup = PromptLookup()
    assert lookup.propose(state(prompt, (1, 2, 3)), 1).ids == (10,)
    assert lookup.propose(state(prompt, (7, 2, 3)), 1).ids == (20,), "the latest of equally long ones"
    assert lookup.propose(state(prompt, (7, 7, 3)), 5).ids == ()


def test_lookup_prefers_what_followed_most_often() -> None:
    prompt = (5, 6, 1, 0, 5, 6, 1, 0, 5, 6, 2, 9)
    draft = PromptLookup().propose(state(prompt, (5, 6)), 1)
    assert draft.ids == (1,)
    assert draft.confidence < PromptLookup().propose(state((5, 6, 1, 0), (5, 6)), 1).confidence


def test_a_lookup_draft_is_cut_by_the_length_of_its_match() -> None:
    prompt = tuple(range(60))
    assert PromptLookup().propose(state(prompt, (4, 5)), 40).ids == tuple(range(6, 22))
    assert len(PromptLookup().propose(state(prompt, (4, 5, 6)), 40).ids) == 24


def test_lookup_has_nothing_to_say_before_the_first_token() -> None:
    """What stands before it is the template's header, which matches wherever a reply began."""
    assert PromptLookup().propose(state((1, 2, 3, 1, 2)), 5).ids == ()


def test_successors_are_drafted_while_nearly_all_agree() -> None:
    successors = SuccessorDrafter()
    prompt = (5, 6, 7, 1, 8, 5, 6, 7, 1, 9, 5, 6, 7, 1, 8)
    assert successors.propose(state(prompt, (5,)), 9).ids == (6, 7, 1), "1 went on in two ways"
    assert successors.propose(state(prompt, (5,)), 2).ids == (6, 7)
    assert successors.propose(state(prompt, (3,)), 9).ids == ()
    assert successors.propose(state(prompt), 9).ids == ()
    successors.observe((3, 4))
    assert successors.propose(state((1,), (3,)), 9).ids == (4,)
    assert successors.propose(state((1,), (5,)), 9).ids == (), "the prompt was rewritten"
    assert successors.propose(state((2, 2, 2), (2,)), 9).ids == (2,), "round in a circle once"


def test_a_lookup_draft_ends_where_its_line_ends() -> None:
    """`.\\n` in the facts is `.` in the reply."""
    lookup = PromptLookup(lambda token: 30 if token == 33 else None)
    assert lookup.propose(state((1, 2, 3, 33, 4, 5), (1, 2)), 5).ids == (3, 30)


def test_lookup_follows_a_prompt_that_is_rewritten() -> None:
    lookup = PromptLookup()
    lookup.propose(state((1, 2, 3), (1, 2)), 3)
    assert lookup.propose(state((1, 2, 4), (1, 2)), 1).ids == (4,)
    assert lookup.propose(state((9,), (1, 2)), 1).ids == ()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), min_size=0, max_size=25), min_size=1, max_size=6))
def test_an_index_that_follows_equals_a_new_one(versions: list[list[int]]) -> None:
    followed = TokenIndex()
    number = followed.add(())
    for version in versions:
        followed.follow(number, version)
    fresh = TokenIndex()
    fresh.add(versions[-1])
    for probe in versions:
        assert followed.longest_match(probe, 2, 8) == fresh.longest_match(probe, 2, 8)


def test_the_oldest_texts_are_forgotten() -> None:
    sequences = TokenIndex(most_tokens=30)
    for first in range(10):
        sequences.add([first, 50, 51, 52, *range(100 + first, 106 + first)])
    assert sequences.longest_match((0, 50, 51), 3, 1) is None
    assert sequences.longest_match((9, 50, 51), 3, 1) is not None
    assert MOST_OCCURRENCES > 1


def test_phrases_draft_before_the_first_token() -> None:
    phrases = PhraseDrafter(TenantMemory())
    assert phrases.propose(state((1,)), 5).ids == ()
    phrases.learn((4, 5, 6))
    assert phrases.propose(state((1,)), 5).ids == (4, 5, 6)
    phrases.observe((7, 8, 9))
    phrases.observe((7, 8, 2))
    assert phrases.propose(state((1,)), 5).ids[:2] == (7, 8)
    assert phrases.propose(state((1,), (4,)), 5).ids == (5, 6)
    assert phrases.propose(state((1,), (3,)), 5).ids == ()


def test_phrases_are_bounded() -> None:
    memory = TenantMemory()
    memory.add_phrase(range(100, 200))
    longest = memory.phrase_after((), 99)
    assert longest is not None
    assert len(longest.continuation) == LONGEST_PHRASE
    for i in range(MOST_PHRASES):
        memory.add_phrase((i % 7, i))
    assert memory.phrase_after((100,), 1) is None, "the oldest is gone"


def test_what_every_call_teaches_is_remembered_once() -> None:
    memory = TenantMemory()
    for _ in range(MOST_PHRASES):
        for drafter in (SuffixDrafter(memory), PhraseDrafter(memory)):
            drafter.learn((4, 5, 6))
            drafter.learn((4, 5, 7))
    memory.add_phrase((8, 9))
    memory.add_phrase((8, 9))
    memory.add_phrase((8, 9))
    likely = memory.phrase_after((), 2)
    assert likely is not None
    assert likely.continuation == (8, 9), "said three times, against two that were taught"
    match = memory.longest_match((4, 5), 2, 1)
    assert match is not None
    assert match.share == 0.5
    for i in range(9000):
        memory.add_text(range(i, i + 8))
    assert memory.longest_match((4, 5), 2, 1) is None, "forgotten with the oldest"
    memory.teach_text((4, 5, 6))
    assert memory.longest_match((4, 5), 2, 1) is not None


def test_nothing_is_shared_between_tenants() -> None:
    memories = TenantMemories()
    memories.of("a").add_phrase((1, 2))
    assert memories.of("a").phrase_after((), 1) is not None
    assert memories.of("b").phrase_after((), 1) is None
    assert memories.of("") is not memories.of("")
    for i in range(MOST_TENANTS):
        memories.of(f"tenant {i}")
    assert memories.of("a").phrase_after((), 1) is None, "forgotten beyond the limit"


def test_the_previous_reply_is_drafted_again_from_where_it_still_fits() -> None:
    previous = (1, 2, 3, 4, 5, 6, 7)
    reply = PreviousReply()
    assert reply.propose(state((9,), (), previous), 4).ids == (1, 2, 3, 4)
    assert reply.propose(state((9,), (1, 2), previous), 9).ids == (3, 4, 5, 6, 7)
    assert reply.propose(state((9,), (1, 2, 30), previous), 2).ids == (4, 5), "one token replaced"
    assert reply.propose(state((9,), (1, 30, 31, 2, 3), previous), 2).ids == (4, 5), "found again"
    assert reply.propose(state((9,), previous, previous), 2).ids == ()
    assert reply.propose(state((9,), (), ()), 2).ids == ()


def run(verifier: Verifier, temperature: float, drafter: Drafter | None) -> Generation:
    sampling = Sampling(temperature=temperature, top_p=0.9, max_tokens=60)
    made = generation(ROWS, VOCABULARY, (1, 2, 3), sampling, nothing, verifier=verifier)
    if drafter is not None:
        made.proposer = DraftGate([drafter], PassCosts({1: 1.0, 16: 1.0}), VOCABULARY)
    list(made)
    return made


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("verifier", [Coupled(), Rejection()], ids=["coupled", "rejection"])
def test_a_target_that_drafts_for_itself_is_always_right(verifier: Verifier, temperature: float) -> None:
    """A cache that falls behind, or noise that differs, would show here first."""
    made = run(verifier, temperature, small_model())
    assert made.stats.acceptance_rate == 1.0
    assert made.stats.passes < 30
    if verifier.name == "coupled":
        assert made.committed == run(verifier, temperature, None).committed


def test_a_draft_model_of_other_weights_changes_nothing() -> None:
    other = ToyTarget(random_rows(VOCABULARY, seed=3), VOCABULARY)
    for temperature in (0.0, 0.8):
        plain = run(Coupled(), temperature, None)
        made = run(Coupled(), temperature, ModelDrafter(DraftModel(other, 1e-3), FairLock()))
        assert made.committed == plain.committed
        assert made.stats.drafts > 0


def test_a_draft_model_lets_other_calls_pass_while_it_reads_a_prompt() -> None:
    target = ToyTarget(ROWS, VOCABULARY)
    prompt = [1] * (3 * PREFILL_CHUNK + 2)
    state = ReplyState(prompt, len(prompt), Processors(Sampling(), len(prompt)), SeededNoise(0))
    ModelDrafter(DraftModel(target, 1e-3), FairLock()).propose(state, 1)
    assert [width for width, _ in target.caches[0].blocks] == [PREFILL_CHUNK] * 3 + [2]


def test_a_draft_model_stops_reading_a_prompt_when_the_reply_is_cancelled() -> None:
    """No pass of the target follows, and the next reply finds what was read."""
    small, large = ToyTarget(ROWS, VOCABULARY), ToyTarget(ROWS, VOCABULARY)
    drafter = ModelDrafter(DraftModel(small, 1e-3), FairLock())
    prompt = [1] * (3 * PREFILL_CHUNK + 2)
    for wanted in (2, 1000):
        made = generation(
            ROWS,
            VOCABULARY,
            prompt,
            Sampling(max_tokens=4),
            drafter.propose,
            cancelled=lambda: len(small.caches[0].blocks) >= wanted,  # noqa: B023 (called at once)
            target=large,
        )
        tokens = list(made)
        read = [width for width, _ in small.caches[0].blocks]
        if wanted == 2:
            assert read == [PREFILL_CHUNK] * 2
            assert (tokens, made.ended, large.passes) == ([], "cancelled", 0)
    assert read[:4] == [PREFILL_CHUNK] * 3 + [2]
    assert len(tokens) == 4


def test_a_draft_models_noise_is_the_targets_under_coupling_alone() -> None:
    assert (Coupled().draft_purpose, Rejection().draft_purpose) == (Purpose.CHOICE, Purpose.DRAFT)


def test_a_draft_model_is_timed_by_the_quickest_pass() -> None:
    ticks = iter((0.0, 3.0, 10.0, 11.0, 20.0, 22.0, 30.0, 32.0, 40.0, 42.0))
    model = DraftModel.measured(ToyTarget(ROWS, VOCABULARY), lambda: next(ticks))
    assert model.seconds_per_token == 1.0


def vocabulary(pieces: dict[str, int]) -> Tokenizer:
    bpe = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": None,
        "model": {"type": "BPE", "vocab": pieces, "merges": []},
    }
    return Tokenizer(Vocabulary(json.dumps(bpe), {}, (), 10, None))


def test_vocabularies_are_compared_id_by_id() -> None:
    ours = vocabulary({"a": 0, "b": 1, "c": 2})
    check_vocabularies(ours, vocabulary({"a": 0, "b": 1, "c": 2}))
    with pytest.raises(IncompatibleVocabulary, match=r"id 1 is 'b' .* 'x'"):
        check_vocabularies(ours, vocabulary({"a": 0, "x": 1, "c": 2}))
    with pytest.raises(IncompatibleVocabulary, match=r"id 2 is 'c' .* None"):
        check_vocabularies(ours, vocabulary({"a": 0, "b": 1}))
