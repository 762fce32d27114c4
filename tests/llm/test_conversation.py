"""A call's turns: the cache kept between them, revisions, several calls at once, and a broken model."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pytest

from llm.cache import CallCache
from llm.fair_lock import FairLock
from llm.language_model import Conversation, Finished, LanguageModel, Message, Sampling, Sentence
from llm.prompt import PromptError
from llm.sentences import SentencePolicy
from llm.targets.base import NonFiniteLogits
from tests.llm.harness import Queue
from tests.llm.toys import END, ToyTarget, byte_tokenizer, random_rows

TOKENIZER = byte_tokenizer()
VOCABULARY = 258
SYSTEM = Message("system", "You are the receptionist. We open at eight. We close at six.")


def target() -> ToyTarget:
    return ToyTarget(random_rows(VOCABULARY, seed=1, sharpness=4.0, memory=3), VOCABULARY)


def never() -> bool:
    return False


def answer(
    conversation: Conversation, messages: Sequence[Message], draft: Sequence[int] = (), **sampling: float
) -> Finished:
    given = Sampling(**{"max_tokens": 30, **sampling})  # type: ignore[arg-type]
    *_, last = conversation.reply(messages, given, draft=draft, cancelled=never)
    assert isinstance(last, Finished)
    return last


def test_the_second_turn_reads_only_what_is_new() -> None:
    conversation = LanguageModel(target(), TOKENIZER).open()
    messages = [SYSTEM, Message("user", "When do you open?")]
    first = answer(conversation, messages)
    assert first.stats.cached_tokens == 0
    messages += [Message("assistant", first.text, first.ids), Message("user", "And close?")]
    second = answer(conversation, messages)
    header = "<|im_end|>\n<|im_start|>user\nAnd close?<|im_end|>\n<|im_start|>assistant\n"
    new = len(TOKENIZER.encode_markup(header)) + 1  # and the reply's last token, which no pass has read
    assert second.stats.prefilled_tokens == new
    fresh = answer(LanguageModel(target(), TOKENIZER).open(), messages)
    assert fresh.ids == second.ids


def test_reading_while_the_caller_speaks_leaves_little_for_the_reply() -> None:
    conversation = LanguageModel(target(), TOKENIZER).open()
    said = "When do you open on Saturday morning?"
    read = conversation.prefill([SYSTEM], never)
    assert read > len(SYSTEM.text)
    for end in range(0, len(said), 5):
        read += conversation.prefill([SYSTEM, Message("user", said[:end])], never)
    last = answer(conversation, [SYSTEM, Message("user", said)])
    held_back = len(" morning?" + "<|im_end|>\n<|im_start|>assistant\n")
    assert last.stats.prefilled_tokens <= held_back
    assert read + last.stats.prefilled_tokens == last.stats.prompt_tokens
    assert last.ids == answer(LanguageModel(target(), TOKENIZER).open(), [SYSTEM, Message("user", said)]).ids


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_a_revision_checks_the_old_reply_in_the_pass_that_reads_the_new_words(temperature: float) -> None:
    """However the old reply fits, the new one is what it would have been without it."""
    for seed in range(8):
        revised = [SYSTEM, Message("user", "When do you open on Sunday?")]
        sampling = {"temperature": temperature, "seed": seed}
        expected = answer(LanguageModel(target(), TOKENIZER, drafters=()).open(), revised, **sampling)
        conversation = LanguageModel(target(), TOKENIZER).open()
        old = answer(conversation, [SYSTEM, Message("user", "When do you open")], **sampling)
        new = answer(conversation, revised, old.ids, **sampling)
        assert new.ids == expected.ids
        assert new.stats.reply_draft_tokens == len(old.ids)


def test_the_same_prompt_again_keeps_the_whole_draft() -> None:
    model = LanguageModel(target(), TOKENIZER)
    conversation = model.open()
    messages = [SYSTEM, Message("user", "When do you open")]
    for temperature in (0.0, 0.9):
        old = answer(conversation, messages, temperature=temperature)
        again = answer(conversation, messages, old.ids, temperature=temperature)
        assert again.ids == old.ids
        assert again.stats.reply_draft_accepted >= len(old.ids) - again.stats.passes
        assert again.stats.passes <= 3
        assert again.stats.prefilled_tokens == 1


def test_what_was_taught_or_said_before_comes_sooner() -> None:
    model = LanguageModel(target(), TOKENIZER)
    messages = [SYSTEM, Message("user", "When do you open?")]
    plain = answer(model.open(tenant="a"), messages)
    again = answer(model.open(tenant="a"), messages)
    other = answer(model.open(tenant="b"), messages)
    assert again.ids == plain.ids == other.ids
    assert again.stats.passes < plain.stats.passes
    assert other.stats.passes == plain.stats.passes, "another tenant's call knows nothing of it"


def test_a_broken_model_is_an_error_and_the_call_can_go_on() -> None:
    rows = random_rows(VOCABULARY, seed=1)
    broken = [False]

    def sometimes(ids: Sequence[int]) -> np.ndarray:
        return np.full(VOCABULARY, np.nan) if broken[0] else rows(ids)

    conversation = LanguageModel(ToyTarget(sometimes, VOCABULARY), TOKENIZER).open()
    messages = [SYSTEM, Message("user", "Hello")]
    before = answer(conversation, messages)
    broken[0] = True
    with pytest.raises(NonFiniteLogits):
        answer(conversation, messages)
    broken[0] = False
    assert answer(conversation, messages).ids == before.ids


def test_a_pass_that_fails_leaves_ids_and_cache_in_agreement() -> None:
    toy = target().open()
    cache = CallCache(toy, FairLock())
    cache.score([1, 2, 3], 1)
    with pytest.raises(AssertionError, match="vocabulary"):
        cache.score([4, 10_000], 1)
    assert cache.ids == toy.ids == [1, 2, 3]
    cache.score([4], 1)
    cache.truncate(99)
    assert cache.ids == toy.ids == [1, 2, 3, 4]


def test_the_calls_policy_says_where_sentences_end() -> None:
    messages = [SYSTEM, Message("user", "When do you open?")]
    pieces: list[list[str]] = []
    for policy in (SentencePolicy(), SentencePolicy(max_chars=16)):
        conversation = LanguageModel(target(), TOKENIZER).open(sentences=policy)
        events = list(conversation.reply(messages, Sampling(max_tokens=80), cancelled=never))
        pieces.append([event.text for event in events if isinstance(event, Sentence)])
    whole, short = pieces
    assert "".join(whole) == "".join(short)
    assert len(short) > len(whole)
    assert max(map(len, short)) <= 16


def test_an_empty_prompt_is_an_error() -> None:
    conversation = LanguageModel(target(), TOKENIZER).open()
    with pytest.raises(PromptError, match="empty"):
        conversation.reply([], Sampling(), cancelled=never)
    with pytest.raises(PromptError, match="empty"):
        conversation.prefill([], never)


def test_a_long_call_drops_old_turns_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    small = ToyTarget(random_rows(VOCABULARY, seed=1), VOCABULARY, context=512)
    conversation = LanguageModel(small, TOKENIZER).open()
    messages = [SYSTEM]
    for turn in range(12):
        messages.append(Message("user", f"Question number {turn}?"))
        last = answer(conversation, messages)
        assert conversation.cached_tokens <= 512
        messages.append(Message("assistant", last.text, last.ids))
    assert last.stats.dropped_messages > 0
    told = [r.getMessage() for r in caplog.records]
    assert "outgrown the context of 512" in told[0]
    assert len(told) == len(set(told)) < 11, "told where more is left out, not every turn"
    assert last.stats.as_dict()["dropped_messages"] == last.stats.dropped_messages


def test_a_reply_ends_where_the_context_does() -> None:
    rows = random_rows(VOCABULARY, seed=1)

    def endless(ids: Sequence[int]) -> np.ndarray:
        return np.concatenate([rows(ids)[:END], [-100.0, -100.0]])

    small = ToyTarget(endless, VOCABULARY, context=256)
    last = answer(LanguageModel(small, TOKENIZER).open(), [Message("user", "x" * 150)], max_tokens=400)
    assert last.reason == "length"
    assert last.stats.prompt_tokens + last.stats.committed_tokens <= 256


def test_a_tokenizer_of_another_model_is_refused() -> None:
    with pytest.raises(ValueError, match=r"258 tokens.* 200"):
        LanguageModel(ToyTarget(random_rows(200), 200), TOKENIZER)


def test_calls_side_by_side_answer_as_they_would_alone() -> None:
    model = LanguageModel(target(), TOKENIZER)
    prompts = [[SYSTEM, Message("user", f"Question {i}")] for i in range(6)]
    alone = [answer(LanguageModel(target(), TOKENIZER).open(), p).ids for p in prompts]
    together: dict[int, tuple[int, ...]] = {}

    def call(i: int) -> None:
        together[i] = answer(model.open(tenant="one"), prompts[i]).ids

    threads = [threading.Thread(target=call, args=(i,)) for i in range(len(prompts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[i] for i in range(len(prompts))] == alone


def test_calls_get_their_passes_in_the_order_they_asked() -> None:
    lock = FairLock()
    lock._waiting = queue = Queue()
    order: list[int] = []

    def wait(i: int) -> None:
        with lock.held():
            order.append(i)

    threads = [threading.Thread(target=wait, args=(i,)) for i in range(5)]
    with lock.held():
        for thread in threads:
            thread.start()
            queue.joined.acquire()
    for thread in threads:
        thread.join()
    assert order == list(range(5))


def test_a_closed_call_frees_its_cache_and_may_be_closed_again() -> None:
    toy = target()
    conversation = LanguageModel(toy, TOKENIZER).open()
    events = conversation.reply([SYSTEM, Message("user", "Hi")], Sampling(), cancelled=never)
    next(events)
    conversation.close()
    conversation.close()
    assert toy.caches[0].closed
    assert list(events) == []


def test_warming_up_measures_with_the_clock_that_was_given() -> None:
    now = [0.0]

    def rows(ids: Sequence[int]) -> np.ndarray:
        now[0] += 0.001
        return np.zeros(VOCABULARY)

    model = LanguageModel(ToyTarget(rows, VOCABULARY), TOKENIZER, clock=lambda: now[0])
    model.warm_up()
    assert [model.pass_costs(w) for w in (1, 4, 10)] == pytest.approx([0.001, 0.004, 0.010])


def test_a_drafter_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match=r"unknown drafters .*crystal ball"):
        LanguageModel(target(), TOKENIZER, drafters=("crystal ball",))
    with pytest.raises(ValueError, match="verification 'hopeful'"):
        LanguageModel(target(), TOKENIZER).open(verification="hopeful")  # type: ignore[arg-type]


def test_bad_words_are_never_written() -> None:
    messages = [SYSTEM, Message("user", "Hi")]
    plain = answer(LanguageModel(target(), TOKENIZER).open(), messages)
    bad = bytes(TOKENIZER.token_bytes(plain.ids[0])).decode("latin-1")
    if bad.isascii():
        without = answer(LanguageModel(target(), TOKENIZER).open(), messages, bad_words=(bad,))  # type: ignore[arg-type]
        assert bad not in without.text
