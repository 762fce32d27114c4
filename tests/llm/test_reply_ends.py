"""A reply ends at the exact token: end tokens, stop strings, length, cancellation, inside a block too."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from llm.answer_text import AnswerText
from llm.drafters.base import Draft
from llm.engine import Pass
from llm.language_model import Conversation, Delta, Finished, LanguageModel, Message, Sampling, Sentence
from llm.tokenizer import Tokenizer
from tests.llm.harness import Guess, generation, nothing
from tests.llm.toys import END, ToyTarget, byte_tokenizer, random_rows

PROMPT = [Message("system", "Be brief."), Message("user", "Where are you?")]
TEXT = "We’re at 12 Park Street — next to the café. Parking is free! Ask for Zoë at the désk."
TOKENIZER = byte_tokenizer()
VOCABULARY = 258


def never() -> bool:
    return False


def writing(
    text: str, tokenizer: Tokenizer = TOKENIZER, *, ids: Sequence[int] | None = None, opening: str = ""
) -> ToyTarget:
    """A target that writes this text, byte by byte, or these ids, after any reply header, then ends.

    `opening`: what the header goes on with.
    """
    script = (*(tokenizer.encode(text) if ids is None else ids), END)
    header = tokenizer.encode_markup(f"<|im_start|>assistant\n{opening}")

    def rows(ids: Sequence[int]):  # type: ignore[no-untyped-def]
        logits = random_rows(tokenizer.size, sharpness=0.1)(ids)
        start = max(i for i in range(len(ids)) if tuple(ids[i : i + len(header)]) == header) + len(header)
        if len(ids) >= start:
            logits[script[min(len(ids) - start, len(script) - 1)]] += 20.0
        return logits

    return ToyTarget(rows, tokenizer.size)


def answer(
    conversation: Conversation,
    sampling: Sampling,
    *,
    draft: Sequence[int] = (),
    cancelled: Callable[[], bool] = never,
    passes: list[Pass] | None = None,
) -> tuple[list[Delta | Sentence], Finished]:
    *events, last = conversation.reply(PROMPT, sampling, draft=draft, cancelled=cancelled, passes=passes)
    assert isinstance(last, Finished)
    return [e for e in events if not isinstance(e, Finished)], last


def check(events: Sequence[Delta | Sentence], last: Finished, conversation: Conversation) -> None:
    """Text, ids, cache and figures agree."""
    assert "".join(e.text for e in events if isinstance(e, Delta)) == last.text
    sentences = [e for e in events if isinstance(e, Sentence)]
    assert "".join(e.text for e in sentences) == last.text
    assert [e.index for e in sentences] == list(range(len(sentences)))
    assert TOKENIZER.decode(last.ids) == last.text
    stats = last.stats
    assert stats.committed_tokens <= len(last.ids)
    assert stats.prompt_tokens == stats.cached_tokens + stats.prefilled_tokens
    assert conversation.cached_tokens <= stats.prompt_tokens + len(last.ids)
    assert 0 <= stats.accepted.total() <= min(stats.drafted.total(), stats.committed_tokens)
    assert sum(stats.accepted_per_position) == stats.accepted.total()


DRAFTS = {
    "plain": (),
    "right": TOKENIZER.encode(TEXT),
    "right, then on": (*TOKENIZER.encode(TEXT), END, 65, 66),
    "wrong from the middle": (*TOKENIZER.encode(TEXT)[:20], *TOKENIZER.encode("something else")),
}


@pytest.mark.parametrize("draft", DRAFTS)
def test_a_whole_reply(draft: str) -> None:
    conversation = LanguageModel(writing(TEXT), TOKENIZER).open()
    events, last = answer(conversation, Sampling(max_tokens=200), draft=DRAFTS[draft])
    check(events, last, conversation)
    assert (last.reason, last.text) == ("eos", TEXT)
    assert last.stats.committed_tokens == len(last.ids) == len(TEXT.encode())
    if draft == "right":
        assert last.stats.tokens_per_pass > 10
        assert last.stats.reply_draft_accepted == last.stats.drafted["reply"]


@pytest.mark.parametrize("draft", DRAFTS)
def test_every_stop_string(draft: str) -> None:
    model = LanguageModel(writing(TEXT), TOKENIZER)
    for length in (1, 2, 5, 17):
        for begin in range(0, len(TEXT) - length, 3):
            stop = TEXT[begin : begin + length]
            conversation = model.open()
            events, last = answer(conversation, Sampling(max_tokens=200, stop=(stop,)), draft=DRAFTS[draft])
            check(events, last, conversation)
            assert last.reason == "stop"
            assert last.text == TEXT[: TEXT.index(stop)]


@pytest.mark.parametrize("draft", DRAFTS)
def test_stop_strings_among_the_first_tokens_do_not_count(draft: str) -> None:
    """At every least length, inside a block too. A stop string may begin among the first tokens."""
    model = LanguageModel(writing(TEXT), TOKENIZER)
    stop = ("e ", "12 P", "the")
    for least in range(len(TEXT.encode()) + 1):
        sampling = Sampling(max_tokens=200, min_tokens=least, stop=stop)
        conversation = model.open()
        events, last = answer(conversation, sampling, draft=DRAFTS[draft])
        check(events, last, conversation)
        # A token is a byte, so the tokens up to a stop string's end are its bytes.
        ends = [
            (len(TEXT[:i].encode()), i - len(s))
            for i in range(len(TEXT))
            for s in stop
            if TEXT[:i].endswith(s)
        ]
        cut = next((at for tokens, at in ends if tokens > least), len(TEXT))
        assert last.text == TEXT[:cut]
        assert last.reason == ("stop" if cut < len(TEXT) else "eos")


def test_a_shorter_stop_string_that_did_not_count_is_not_found_later() -> None:
    text = AnswerText(lambda token: b"abcd"[token : token + 1], ("b", "cdef"), min_tokens=2)
    assert [text.push(i) for i in (0, 1, 0, 3, 1)] == ["a", "b", "a", "d", ""]
    assert text.stopped
    assert text.text == "abad"


def test_a_stop_string_inside_a_token_leaves_ids_that_decode_to_the_text() -> None:
    """A token may hold text before the stop string and after it."""
    pieces = [b"Hi", b" there. STO", b"P it", b"!"]
    text = AnswerText(lambda token: pieces[token], ("STOP",))
    given = [text.push(i) for i in range(3)]
    assert given == ["Hi", " there. ", ""]
    assert text.stopped
    assert text.text == "Hi there. "
    assert text.kept() == (1, " there. ")


def test_the_earliest_of_several_stop_strings_ends_the_reply_and_none_is_shown() -> None:
    conversation = LanguageModel(writing(TEXT), TOKENIZER).open()
    sampling = Sampling(max_tokens=200, stop=("Parking", "12", "nowhere"))
    events, last = answer(conversation, sampling, draft=TOKENIZER.encode(TEXT))
    check(events, last, conversation)
    assert last.text == "We’re at "


@pytest.mark.parametrize("draft", DRAFTS)
def test_every_length(draft: str) -> None:
    model = LanguageModel(writing(TEXT), TOKENIZER)
    whole = TOKENIZER.encode(TEXT)
    for limit in range(1, len(whole)):
        conversation = model.open()
        events, last = answer(conversation, Sampling(max_tokens=limit), draft=DRAFTS[draft])
        check(events, last, conversation)
        assert last.reason == "length"
        written = bytes(b for i in whole[:limit] for b in TOKENIZER.token_bytes(i))
        assert last.text == written.decode(errors="ignore"), "never half a character"


VOCABULARY_SMALL = 24
ROWS = random_rows(VOCABULARY_SMALL, seed=11, sharpness=2.5)


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_every_generated_token_declared_the_end(temperature: float) -> None:
    sampling = Sampling(temperature=temperature, max_tokens=48)
    plain = tuple(generation(ROWS, VOCABULARY_SMALL, (1, 2, 3), sampling))

    def oracle(width: int) -> Guess:
        return lambda state, budget: Draft(plain[state.position : state.position + width], "oracle")

    for end in sorted(set(plain)):
        expected = plain[: plain.index(end)]
        for guess in (nothing, oracle(1), oracle(4), oracle(15)):
            made = generation(ROWS, VOCABULARY_SMALL, (1, 2, 3), sampling, guess, ends=frozenset({end}))
            assert tuple(made) == expected
            assert made.ended == "eos"
            assert made.stats.committed_tokens == len(expected)
            assert made.stats.accepted.total() <= len(expected)
            assert made.cache.ids == [1, 2, 3, *expected][: len(made.cache)]


@pytest.mark.parametrize("draft", DRAFTS)
def test_cancel_at_every_check_then_go_on_as_if_new(draft: str) -> None:
    """After a cancellation anywhere, the same call answers as a fresh one does."""
    model = LanguageModel(writing(TEXT), TOKENIZER)
    conversation = model.open()
    for checks in range(60):
        left = iter(range(checks))
        events, last = answer(
            conversation,
            Sampling(max_tokens=200),
            draft=DRAFTS[draft],
            cancelled=lambda left=left: next(left, None) is None,
        )
        check(events, last, conversation)
        assert last.reason in ("cancelled", "eos")
        assert TEXT.startswith(last.text)
    events, last = answer(conversation, Sampling(max_tokens=200))
    assert (last.reason, last.text) == ("eos", TEXT)


def test_abandon_at_every_event_then_go_on_as_if_new() -> None:
    model = LanguageModel(writing(TEXT), TOKENIZER)
    conversation = model.open()
    for count in range(0, 90, 7):
        events = conversation.reply(PROMPT, Sampling(), draft=TOKENIZER.encode(TEXT), cancelled=never)
        for _ in range(count):
            next(events)
        again, last = answer(conversation, Sampling(max_tokens=200))
        check(again, last, conversation)
        assert (last.reason, last.text) == ("eos", TEXT)


def test_cancelling_during_the_prompt_keeps_what_was_read() -> None:
    target = writing(TEXT)
    conversation = LanguageModel(target, TOKENIZER).open()
    long = [Message("system", "x" * 1000), Message("user", "Hello?")]
    checks = iter([False, False, False])
    assert conversation.prefill(long, lambda: next(checks, True)) == 3 * 64
    assert conversation.cached_tokens == 3 * 64
    last = list(conversation.reply(long, Sampling(), cancelled=lambda: True))[-1]
    assert isinstance(last, Finished)
    assert (last.reason, last.text, last.ids) == ("cancelled", "", ())
    assert last.stats.first_token is None
    assert conversation.cached_tokens == 3 * 64
