"""Calls that begin with a copy of a prompt that was read before: what they read, and what they answer."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence

import pytest

from llm.cache import PREFILL_CHUNK, CallCache
from llm.fair_lock import FairLock
from llm.language_model import Conversation, Finished, LanguageModel, Message, Sampling
from llm.shared_prompt import SharedPrompts
from llm.targets.base import Logits
from tests.llm.harness import Queue
from tests.llm.learned.hidden_toys import hidden_toy
from tests.llm.toys import ToyCache, ToyTarget, byte_tokenizer, random_rows

TOKENIZER = byte_tokenizer()
VOCABULARY = 258
AGENT = "You are the receptionist of a dental practice. " + "We open at eight and close at six. " * 4
WELCOME = AGENT + "The caller is {name}, a patient of ours, whom you greet by that name." + " Be brief." * 8


def target() -> ToyTarget:
    return ToyTarget(random_rows(VOCABULARY, seed=1, sharpness=4.0, memory=3), VOCABULARY)


def never() -> bool:
    return False


def prompt_of(text: str) -> list[int]:
    """What a prompt with this system message begins with."""
    return LanguageModel(target(), TOKENIZER).prompts.stable([Message("system", text)]).ids


def messages(system: str, said: str = "When do you open?") -> list[Message]:
    return [Message("system", system), Message("user", said)]


def answer(conversation: Conversation, said: Sequence[Message], **sampling: float) -> Finished:
    given = Sampling(**{"max_tokens": 30, **sampling})  # type: ignore[arg-type]
    *_, last = conversation.reply(said, given, cancelled=never)
    assert isinstance(last, Finished)
    return last


def alone(said: Sequence[Message], **sampling: float) -> tuple[int, ...]:
    """What a call answers that reads everything itself."""
    return answer(LanguageModel(target(), TOKENIZER).open(), said, **sampling).ids


def after(most: int) -> Callable[[], bool]:
    """Turns true when it is asked for the `most`-th time and one more."""
    left = iter(range(most))
    return lambda: next(left, None) is None


def read_by(toy: ToyTarget, begin: int = 0) -> int:
    """Ids that the target's caches read, those opened from the `begin`-th on."""
    return sum(count for cache in toy.caches[begin:] for count, _ in cache.blocks)


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_a_call_reads_only_its_own_words(temperature: float) -> None:
    toy = target()
    model = LanguageModel(toy, TOKENIZER)
    assert model.read_prompt(AGENT, never)
    assert read_by(toy) == len(prompt_of(AGENT))
    for tenant in ("", "one", "another"):
        call = model.open(tenant=tenant)
        opened = len(toy.caches) - 1
        assert call.prefill([Message("system", AGENT)], never) == 0
        assert read_by(toy, opened) == 0
        last = answer(call, messages(AGENT), temperature=temperature, seed=3)
        assert last.stats.cached_tokens == len(prompt_of(AGENT))
        assert last.stats.prefilled_tokens == last.stats.prompt_tokens - len(prompt_of(AGENT))
        assert last.ids == alone(messages(AGENT), temperature=temperature, seed=3)


def test_a_reply_without_a_prefill_begins_with_the_agents_prompt() -> None:
    model = LanguageModel(target(), TOKENIZER)
    model.read_prompt(AGENT, never)
    last = answer(model.open(), messages(AGENT))
    assert last.stats.cached_tokens == len(prompt_of(AGENT))
    assert last.ids == alone(messages(AGENT))


def test_a_prompt_with_variables_begins_with_what_is_before_them() -> None:
    model = LanguageModel(target(), TOKENIZER)
    model.read_prompt(WELCOME, never)
    filled = WELCOME.replace("{name}", "Mrs Jones")
    call = model.open()
    system = Message("system", filled)
    same = len(TOKENIZER.encode_markup("<|im_start|>system\n")) + WELCOME.index("{name}")
    assert call.prefill([system], never) == len(prompt_of(filled)) - same
    assert answer(call, messages(filled)).ids == alone(messages(filled))


def test_what_a_client_sets_is_shared_within_its_tenant() -> None:
    model = LanguageModel(target(), TOKENIZER)
    model.read_prompt(WELCOME, never)
    filled = Message("system", WELCOME.replace("{name}", "Mrs Jones"))
    first, second, other, nobody = (model.open(tenant=tenant) for tenant in ("one", "one", "two", ""))
    read = first.prefill([filled], never)
    assert read > PREFILL_CHUNK
    assert second.prefill([filled], never) == 0
    assert other.prefill([filled], never) == read
    assert nobody.prefill([filled], never) == read
    assert model.open(tenant="").prefill([filled], never) == read, "a call without a tenant shares with none"


def test_what_the_caller_said_is_never_shared() -> None:
    model = LanguageModel(target(), TOKENIZER)
    said = messages(AGENT, "My number is " + "5 5 5 " * 20 + "and that is all.")
    first, second = model.open(tenant="one"), model.open(tenant="one")
    first.prefill(said[:1], never)
    read = first.prefill(said, never)
    assert read > PREFILL_CHUNK
    answer(first, said)
    assert second.prefill(said, never) == read, "the system message alone is there"


def test_a_system_message_is_shared_when_all_of_it_was_read() -> None:
    model = LanguageModel(target(), TOKENIZER)
    system = [Message("system", AGENT)]
    first = model.open(tenant="one")
    assert first.prefill(system, after(1)) == PREFILL_CHUNK
    assert model.open(tenant="one").prefill(system, after(1)) == PREFILL_CHUNK
    assert first.prefill(system, never) == len(prompt_of(AGENT)) - PREFILL_CHUNK
    assert model.open(tenant="one").prefill(system, never) == 0


def test_instructions_that_change_in_mid_call_begin_with_what_is_known_of_them() -> None:
    model = LanguageModel(target(), TOKENIZER)
    for text in (AGENT, WELCOME):
        model.read_prompt(text, never)
    call = model.open()
    answer(call, messages(AGENT))
    changed = answer(call, messages(WELCOME))
    assert changed.stats.cached_tokens == len(prompt_of(WELCOME))
    assert changed.ids == alone(messages(WELCOME))


def test_reading_an_agents_prompt_stops_and_goes_on() -> None:
    toy = target()
    model = LanguageModel(toy, TOKENIZER)
    assert not model.read_prompt(AGENT, after(0))
    assert not model.read_prompt(AGENT, after(2))
    begun = read_by(toy)
    assert 0 < begun < len(prompt_of(AGENT))
    assert model.open().prefill([Message("system", AGENT)], after(0)) == 0
    last = answer(model.open(), messages(AGENT))
    assert last.stats.cached_tokens == begun, "a call begins with what there is"
    assert model.read_prompt(AGENT, never)
    largest = max(count for cache in (toy.caches[0], toy.caches[-1]) for count, _ in cache.blocks)
    assert largest < PREFILL_CHUNK, "nobody waits for more than a small chunk"
    assert read_by(toy, len(toy.caches) - 1) == len(prompt_of(AGENT)) - begun
    assert model.read_prompt(AGENT, never)
    assert answer(model.open(), messages(AGENT)).ids == last.ids == alone(messages(AGENT))


def test_a_pass_that_is_waited_for_comes_between_two_chunks() -> None:
    """A reply whose pass is asked for during the first chunk gets it before the second."""
    order: list[str] = []
    lock = FairLock()
    lock._waiting = queue = Queue()

    class Noting(ToyCache):
        def extend(self, ids: Sequence[int], rows: int) -> Logits:
            order.append("reply" if rows else "chunk")
            if order == ["chunk"]:
                reply.start()
                queue.joined.acquire()
            return super().extend(ids, rows)

    class Noted(ToyTarget):
        def open(self) -> ToyCache:
            return Noting(self)

    toy = Noted(random_rows(VOCABULARY), VOCABULARY)
    call = CallCache(toy.open(), lock)
    reply = threading.Thread(target=call.score, args=([1], 1))
    SharedPrompts(toy, lock).read(prompt_of(AGENT), never)
    reply.join()
    assert order[:3] == ["chunk", "reply", "chunk"]


def test_memory_is_limited_and_the_longest_unused_goes_first() -> None:
    toy = target()
    prompts = SharedPrompts(toy, FairLock(), memory=4 * 1000)
    agent = list(range(200))
    assert prompts.read(agent, never)

    def keep(start: int, length: int = 200) -> None:
        cache = CallCache(toy.open(), FairLock())
        cache.read([start] * length, never)
        prompts.keep("one", cache, length)
        assert prompts.bytes <= 4 * 1000

    def known() -> set[int]:
        return {i for i in range(201, 230) if prompts.of("one").longest([i] * 200, 150) is not None}

    for start in (201, 202, 203, 204):
        keep(start)
    assert known() == {201, 202, 203, 204}
    assert prompts.of("one").longest([201] * 200, 0) is not None
    keep(205)
    assert known() == {201, 203, 204, 205}, "the longest unused went"
    keep(206, 801)
    assert known() == {201, 203, 204, 205}, "what does not fit beside the agents' pushes nothing out"
    keep(207, 800)
    assert known() == {207}
    assert prompts.of("two").longest(agent, 0) is not None, "an agent's prompt stays"
    assert prompts.read([99] * 300, never)
    assert known() == set(), "agents' prompts come first"
    passes = read_by(toy)
    assert prompts.read([98] * 600, never), "no room beside the other agents': not made"
    assert read_by(toy) == passes
    assert prompts.of("").longest([98] * 600, 0) is None


def test_a_longer_prompt_takes_the_place_of_its_beginning() -> None:
    toy = target()
    prompts = SharedPrompts(toy, FairLock())
    for length in (100, 300, 300):
        assert prompts.read([7] * length, never)
    assert prompts.bytes == 4 * 300
    assert prompts.read([7] * 200, never)
    assert read_by(toy) == 300
    assert prompts.bytes == 4 * 300


def test_a_prompt_longer_than_the_context_is_left_to_its_calls() -> None:
    toy = target()
    toy.context = 100
    assert SharedPrompts(toy, FairLock()).read([7] * 101, never)
    assert read_by(toy) == 0


def test_a_target_that_cannot_be_copied_serves_without() -> None:
    toy = target()
    toy.position_bytes = 0
    model = LanguageModel(toy, TOKENIZER)
    assert model.read_prompt(AGENT, never)
    last = answer(model.open(tenant="one"), messages(AGENT))
    assert last.stats.cached_tokens == 0
    assert last.ids == alone(messages(AGENT))


def test_a_draft_model_begins_with_the_agents_prompt_too() -> None:
    small = target()
    model = LanguageModel(target(), TOKENIZER, drafters=(), draft_model=small)
    assert model.read_prompt(AGENT, never)
    measured = len(small.caches)
    last = answer(model.open(), messages(AGENT))
    assert last.ids == alone(messages(AGENT))
    assert last.stats.drafted["model"] > 0
    assert read_by(small, measured) < len(prompt_of(AGENT))


@pytest.mark.parametrize("most", [1, 5, 64])
def test_hidden_states_are_those_of_a_call_that_read_its_prompt(most: int) -> None:
    toy = hidden_toy()
    lock = FairLock()
    prompts = SharedPrompts(toy, lock)
    ids = [random.Random(1).randrange(12) for _ in range(200)]
    prompts.read(ids[:150], never)
    begun, itself = (CallCache(toy.open(), lock, known) for known in (prompts.of(""), None))
    other = CallCache(toy.open(), lock, prompts.of(""))
    other.keep_hidden(most)
    other.score(ids[100:180], 1)  # a call whose prompt was another one
    for cache in (begun, itself):
        cache.keep_hidden(most)
    for cache in (begun, itself, other):
        copied = cache.begin(ids)
        assert copied == (0 if cache is itself else min(150, 200 - most))
        assert len(cache.hidden_since(0)[1]) == 0
        cache.read(ids[copied:], never)
    for cache in (begun, other):
        for (start, states), (expected_start, expected) in zip(
            [cache.hidden_since(0), cache.hidden_since(199)],
            [itself.hidden_since(0), itself.hidden_since(199)],
            strict=True,
        ):
            assert start == expected_start
            assert (states == expected).all()


def test_two_calls_at_once_answer_as_each_would_alone() -> None:
    """While the agent's prompt is being read, and client-set ones are shared and pushed out."""
    model = LanguageModel(target(), TOKENIZER)
    assert model._prompts is not None
    model._prompts._memory = 4 * 2500
    names = ("Ann", "Bob", "Cleo", "Dan")
    asked = [messages(WELCOME.replace("{name}", name)) for name in names] + [messages(AGENT)] * 2
    expected = [alone(each) for each in asked]
    together: dict[int, list[tuple[int, ...]]] = {}
    ready = threading.Barrier(len(asked) + 1)

    def call(number: int) -> None:
        ready.wait()
        together[number] = []
        for _ in range(3):
            conversation = model.open(tenant=f"tenant {number % 2}")
            conversation.prefill(asked[number][:1], never)
            together[number].append(answer(conversation, asked[number]).ids)
            conversation.close()

    def read() -> None:
        ready.wait()
        for text in (AGENT, WELCOME):
            while not model.read_prompt(text, after(3)):
                pass

    threads = [threading.Thread(target=call, args=(number,)) for number in range(len(asked))]
    for thread in [*threads, reader := threading.Thread(target=read)]:
        thread.start()
    for thread in [*threads, reader]:
        thread.join()
    assert [together[number] for number in range(len(asked))] == [[each] * 3 for each in expected]
    assert model._prompts.bytes <= 4 * 2500


@pytest.mark.parametrize("seed", range(6))
def test_replies_do_not_depend_on_what_was_shared(seed: int) -> None:
    """Any order of opening, reading ahead, answering and closing, with too little memory for all prompts."""
    chance = random.Random(seed)
    model = LanguageModel(target(), TOKENIZER)
    assert model._prompts is not None
    model._prompts._memory = 4 * 2000
    calls: list[Conversation] = []
    for _ in range(40):
        text = chance.choice([AGENT, WELCOME, WELCOME.replace("{name}", chance.choice(["Ann", "Bo"])), "Hi."])
        asked = messages(text, chance.choice(["When?", "When do you open?", "Where are you, please?"]))
        action = chance.random()
        if action < 0.15:
            model.read_prompt(chance.choice([AGENT, WELCOME]), after(chance.randrange(12)))
        elif action < 0.4 or not calls:
            calls.append(model.open(tenant=chance.choice(["", "one", "two"])))
        elif action < 0.7:
            chance.choice(calls).prefill(asked[: chance.randrange(1, 3)], after(chance.randrange(8)))
        elif action < 0.95:
            sampling = {"temperature": chance.choice([0.0, 0.8]), "seed": chance.randrange(3)}
            assert answer(chance.choice(calls), asked, **sampling).ids == alone(asked, **sampling)
        else:
            calls.pop(chance.randrange(len(calls))).close()
        assert model._prompts.bytes <= 4 * 2000
