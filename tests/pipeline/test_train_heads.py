"""Draft heads for a real model: trained, kept, used through the settings, exact, better than untrained."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from llm.drafters.learned.compatibility import HeadsError
from llm.drafters.learned.load import Kind
from llm.language_model import Finished, LanguageModel, Message, Sampling
from pipeline.config import Settings
from pipeline.loading import train_heads as heads
from pipeline.loading.language import load_embedded
from pipeline.loading.train_heads import train_heads
from pipeline.models import catalogue
from tests.models import path

pytestmark = pytest.mark.usefixtures("one_torch_thread")  # what is trained here is too small for two

SETTINGS = Settings(llm="smollm2-135m", llm_context=1024, llm_threads=1)
SAMPLINGS = (Sampling(max_tokens=32), Sampling(max_tokens=32, temperature=0.8, top_p=0.95, seed=3))
THINGS = ("bread", "cheese", "the moon", "the sea", "horses", "music")


def answer(model: LanguageModel, question: str, sampling: Sampling) -> Finished:
    conversation = model.open()
    *_, last = conversation.reply([Message("user", question)], sampling, cancelled=lambda: False)
    conversation.close()
    assert isinstance(last, Finished)
    return last


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An agent with few words, so that the prompts are soon read."""
    path("smollm2-135m")
    place = tmp_path_factory.mktemp("agent") / "clerk.toml"
    place.write_text('persona = "You are a friendly guide."\ngreeting = "Hello."\n')
    return str(place)


@pytest.fixture(scope="module")
def trained(agent: str, tmp_path_factory: pytest.TempPathFactory) -> dict[Kind, dict[str, Any]]:
    """Both kinds, trained for a few steps on the model's replies to a few prompts."""
    folder = tmp_path_factory.mktemp("heads")
    prompts = folder / "prompts.txt"
    prompts.write_text("\n".join(f"Tell me about {thing}." for thing in THINGS))
    settings = SETTINGS.model_copy(update={"agent": agent})
    kinds: tuple[Kind, ...] = ("medusa", "eagle")
    return {
        kind: train_heads(settings, kind, folder / kind, prompts=prompts, max_tokens=16, steps=8)
        for kind in kinds
    }


@pytest.mark.parametrize("kind", ["medusa", "eagle"])
def test_training_makes_heads_right_more_often(trained: dict[Kind, dict[str, Any]], kind: Kind) -> None:
    report = trained[kind]
    assert report["base"] == catalogue.path("smollm2-135m").name
    assert report["texts"] == len(THINGS)
    assert report["after"][0] > report["before"][0]


@pytest.mark.parametrize("kind", ["medusa", "eagle", "early-exit"])
def test_a_real_reply_stays_what_it_was(trained: dict[Kind, dict[str, Any]], kind: str) -> None:
    wanted = "early-exit:20" if kind == "early-exit" else trained[kind]["out"]  # type: ignore[index]
    drafting = load_embedded(SETTINGS.model_copy(update={"draft_heads": wanted}))
    plain = LanguageModel(drafting.target, drafting.tokenizer, drafters=())
    drafted = 0
    for sampling in SAMPLINGS:
        last = answer(drafting, "Tell me about apples.", sampling)
        assert last.ids == answer(plain, "Tell me about apples.", sampling).ids
        drafted += last.stats.drafted[kind]
    assert drafted > 0


def test_a_corpus_will_do_and_little_of_it_will_not(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(
        "We are open on Monday from nine to five o'clock.\n\n"
        "We are closed on all Sundays and on the first day of the year."
    )
    report = train_heads(SETTINGS, "medusa", tmp_path / "out", corpus=corpus, steps=1)
    assert report["texts"] == 2
    corpus.write_text("Only one text that is long enough to look ahead in.")
    with pytest.raises(HeadsError, match="too little"):
        train_heads(SETTINGS, "medusa", tmp_path / "other", corpus=corpus, steps=1)
    assert not (tmp_path / "other").exists()


def test_what_cannot_be_is_told_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(*_: Any, **__: Any) -> LanguageModel:
        raise AssertionError("the model was loaded")

    monkeypatch.setattr(heads, "load_embedded", work)
    (corpus := tmp_path / "corpus.txt").write_text("Words.")
    (latin := tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    server = SETTINGS.model_copy(update={"llm": "http://localhost:8000/v1"})
    out = tmp_path / "out"
    with pytest.raises(HeadsError, match="not a folder"):
        train_heads(SETTINGS, "medusa", corpus / "heads", corpus=corpus, steps=1)
    for source in ({"corpus": latin}, {"prompts": latin}):
        with pytest.raises(HeadsError, match=r"latin\.txt is not in UTF-8"):
            train_heads(SETTINGS, "medusa", out, steps=1, **source)
    with pytest.raises(HeadsError, match="not for a server's"):
        train_heads(server, "medusa", out, corpus=corpus, steps=1)
    with pytest.raises(HeadsError, match="learning rate"):
        train_heads(SETTINGS, "medusa", out, corpus=corpus, steps=1, learning_rate=0.0)
    (tmp_path / "empty.txt").write_text(" \n\n")
    os.mkfifo(tmp_path / "pipe.txt")
    for name, says in {
        "absent.txt": r"absent\.txt cannot be read: No such file",
        "empty.txt": r"empty\.txt is empty",
        "pipe.txt": r"pipe\.txt is not a file",
        ".": "is not a file",
    }.items():
        for food in ({"corpus": tmp_path / name}, {"prompts": tmp_path / name}):
            with pytest.raises(HeadsError, match=says):
                train_heads(SETTINGS, "medusa", out, steps=1, **food)
