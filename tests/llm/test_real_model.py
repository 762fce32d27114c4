"""The invariant on a real model, with the real kernel and tokenizer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from llm.cache import CallCache
from llm.draft_gate import PassCosts
from llm.drafters.draft_model import IncompatibleVocabulary, check_vocabularies
from llm.fair_lock import FairLock
from llm.language_model import Finished, LanguageModel, Message, Sampling
from llm.prompt_files import PromptFiles
from llm.tokenizer import Tokenizer
from pipeline.models import catalogue
from tests.models import path

SYSTEM = Message(
    "system",
    "You are the receptionist of a dental practice.\n- We are open from eight to six.\n"
    "- We are at twelve Maple Street, next to the library.\nAnswer in one short sentence.",
)
QUESTIONS = ("Where are you, please?", "Repeat after me: order B R 7 4 2 9 K.")


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    loaded = LanguageModel.load(path("smollm2-135m"), context=1024, cache=catalogue.converted())
    loaded.warm_up()
    return loaded


def answer(model: LanguageModel, question: str, sampling: Sampling, draft: tuple[int, ...] = ()) -> Finished:
    conversation = model.open(tenant="test")
    messages = [SYSTEM, Message("user", question)]
    *_, last = conversation.reply(messages, sampling, draft=draft, cancelled=lambda: False)
    conversation.close()
    assert isinstance(last, Finished)
    return last


SAMPLINGS = {
    "greedy": Sampling(max_tokens=72),
    "sampled": Sampling(max_tokens=72, temperature=0.8, top_p=0.95, seed=5),
    "penalised": Sampling(
        max_tokens=72, temperature=0.7, top_k=40, repetition_penalty=1.2, frequency_penalty=0.3
    ),
}


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
def test_no_drafter_changes_a_real_reply(model: LanguageModel, sampling: Sampling) -> None:
    plain = LanguageModel(model.target, model.tokenizer, drafters=())
    drafted_tokens = 0
    for question in QUESTIONS:
        expected = answer(plain, question, sampling)
        assert expected.stats.drafts == 0
        for draft in ((), expected.ids, (*expected.ids[:3], 9, *expected.ids[4:])):
            last = answer(model, question, sampling, draft)
            assert last.ids == expected.ids
            assert last.text == expected.text == model.tokenizer.decode(last.ids)
            drafted_tokens += last.stats.accepted.total()
    assert drafted_tokens > 0


@pytest.fixture(scope="module")
def restarted(model: LanguageModel, tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    """With the agent's prompt from the file that an earlier process left."""
    files = PromptFiles.of(path("smollm2-135m"), model.target, tmp_path_factory.mktemp("prompts"))
    for cancelled in (lambda: False, lambda: pytest.fail("it reads the prompt again")):
        started = LanguageModel(model.target, model.tokenizer, prompt_files=files)
        started.pass_costs = model.pass_costs
        assert started.read_prompt(SYSTEM.text, cancelled)
    return started


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
def test_a_call_that_begins_with_the_agents_prompt_answers_the_same(
    model: LanguageModel, restarted: LanguageModel, sampling: Sampling
) -> None:
    plain = LanguageModel(model.target, model.tokenizer, drafters=())
    prompt = len(model.prompts.stable([SYSTEM]).ids)
    for question in QUESTIONS:
        expected, last = answer(plain, question, sampling), answer(restarted, question, sampling)
        assert (expected.stats.cached_tokens, last.stats.cached_tokens) == (0, prompt)
        assert last.ids == expected.ids


@pytest.mark.parametrize("threads", [1, 2])
def test_a_call_that_begins_with_the_agents_prompt_has_the_same_bits(
    model: LanguageModel, restarted: LanguageModel, threads: int
) -> None:
    assert restarted._prompts is not None
    ids = model.prompts.prompt([SYSTEM, Message("user", QUESTIONS[0])]).ids
    model.target.threads = threads
    itself = CallCache(model.target.open(), FairLock())
    begun = CallCache(model.target.open(), FairLock(), restarted._prompts.of("any"))
    rest = ids[begun.begin(ids) :]
    assert 0 < len(rest) < len(ids) // 2
    expected = itself.score(ids, len(rest))
    assert np.array_equal(begun.score(rest, len(rest)), expected)
    assert np.array_equal(begun.copy_out(len(ids)), itself.copy_out(len(ids)))
    model.target.threads = 2


def test_a_whole_old_reply_is_checked_in_a_few_passes(
    model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where wide passes cost little: what they cost here depends on what else the machine is doing."""
    monkeypatch.setattr(model, "pass_costs", PassCosts({1: 1.0, 8: 1.2, 16: 1.5}))
    sampling = Sampling(max_tokens=40)
    old = answer(model, QUESTIONS[0], sampling)
    again = answer(model, QUESTIONS[0], sampling, old.ids)
    assert again.ids == old.ids
    assert again.stats.passes <= 1 + len(old.ids) // 8


def test_the_vocabulary_is_converted_once(model: LanguageModel, tmp_path: Path) -> None:
    Tokenizer.load(path("smollm2-135m"), tmp_path)
    (converted,) = tmp_path.glob("*.vocabulary.json")
    written = converted.stat().st_mtime_ns
    again = Tokenizer.load(path("smollm2-135m"), tmp_path)
    assert converted.stat().st_mtime_ns == written
    text = "It's 10:30 a.m.; «é» 東京 🎉\n\n  and <|im_start|>system"
    assert again.encode(text) == model.tokenizer.encode(text)
    assert again.decode(again.encode(text)) == text
    assert again.ends == model.tokenizer.ends
    assert not set(again.encode(text)) & {again.encode_markup("<|im_start|>")[0]}


def test_a_truncated_checkpoint_is_told(tmp_path: Path) -> None:
    whole = path("smollm2-135m").read_bytes()
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(whole[: len(whole) // 3])
    with pytest.raises(ValueError, match=r"cut\.gguf"):
        LanguageModel.load(cut, cache=tmp_path)


def test_a_model_drafts_for_itself_whole(model: LanguageModel) -> None:
    """The classic set-up with the target as its own draft model: everything is accepted."""
    check_vocabularies(model.tokenizer, model.tokenizer)
    itself = LanguageModel(model.target, model.tokenizer, drafters=(), draft_model=model.target)
    for sampling in (Sampling(max_tokens=24), Sampling(max_tokens=24, temperature=0.8, seed=2)):
        plain = answer(LanguageModel(model.target, model.tokenizer, drafters=()), QUESTIONS[0], sampling)
        last = answer(itself, QUESTIONS[0], sampling)
        assert last.ids == plain.ids
        assert last.stats.acceptance_rate in (1.0, None)


def test_another_familys_vocabulary_is_refused(model: LanguageModel) -> None:
    class Other(Tokenizer):
        def __init__(self) -> None:
            pass

        def pieces(self) -> dict[int, str]:
            return model.tokenizer.pieces() | {1000: "something else"}

    with pytest.raises(IncompatibleVocabulary, match="id 1000 is"):
        check_vocabularies(model.tokenizer, Other())
