"""The language benchmark's own logic: what it compares, and a peer that dies."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from bench import llm_cpp, llm_learned
from bench.llm_exactness import TURNS, different_bits, different_ids, turns
from bench.llm_learned import NO_MTP, TRAINING, bench_learned, rows
from bench.llm_prompts import CHAT, QUESTIONS
from llm.draft_gate import PassCosts
from llm.language_model import LanguageModel
from tests.llm.toys import ToyTarget, byte_tokenizer, random_rows


def model(*drafters: str, seed: int = 3) -> LanguageModel:
    rows = random_rows(258, seed=seed, sharpness=4.0, memory=1)
    return LanguageModel(ToyTarget(rows, 258), byte_tokenizer(), drafters=drafters)


def test_turns_come_in_whole_calls_and_go_on_where_they_were_left() -> None:
    all_of_them = list(turns(40, 16))
    assert len(all_of_them) == 40
    assert [t.opens for t in all_of_them] == ([True] + [False] * (TURNS - 1)) * 4
    assert {t.sampling.temperature for t in all_of_them} == {0.0, 0.8}
    assert list(turns(20, 16, skip=20)) == all_of_them[20:]
    calls = [[t.question for t in all_of_them[i : i + TURNS]] for i in range(0, 40, TURNS)]
    assert all(a != b and len(set(a)) == TURNS for a, b in pairwise(calls))


def test_what_is_equal_has_no_different_ids_and_tells_how_much_was_compared() -> None:
    figures = different_ids({"all": model("reply", "lookup")}, model(), prompts=10, tokens=12)
    assert figures["different_ids"] == 0
    assert figures["compared_prompts"] == 10
    assert figures["compared_tokens"]["all"] > 60
    assert figures["compared_tokens_drafted"]["all"] > 10, "drafts were accepted, or nothing was tried"


def test_another_models_replies_are_seen_to_differ() -> None:
    figures = different_ids({"other": model("lookup", seed=4)}, model(), prompts=10, tokens=12)
    assert figures["different_ids"] > 50


def test_it_stops_at_a_prompt_when_its_time_is_over() -> None:
    figures = different_ids({"all": model("lookup")}, model(), prompts=10, tokens=12, most_seconds=0.0)
    assert figures["compared_prompts"] == 1


def test_rows_of_a_pure_function_have_no_different_bits() -> None:
    assert different_bits(model(), 200) == {"different_bits": 0, "compared_rows": 200}


def test_heads_are_trained_on_other_questions_than_those_measured() -> None:
    assert not {question.lower() for question in TRAINING} & {q.lower() for q in (*QUESTIONS, *CHAT)}


def test_a_drafters_row_tells_its_work_and_ids_that_differ() -> None:
    same, other = model("lookup"), model("lookup", seed=4)
    for measured in (same, other):
        measured.pass_costs = PassCosts({1: 1.0, 16: 1.0})
    figures = rows(model(), {"same": same, "other": other}, ["Hello.", "How are you?"])
    assert figures["same"]["different_ids"] == 0
    assert figures["other"]["different_ids"] > 10
    assert figures["same"]["drafted"] > 0
    assert 0.0 < figures["same"]["accepted_share"] <= 1.0
    assert figures["same"]["tokens_per_pass"] > 1.0


@pytest.mark.parametrize("mtp_model", [None, Path("with-a-layer.gguf")])
def test_every_drafter_from_inside_the_model_has_its_row(
    monkeypatch: pytest.MonkeyPatch, mtp_model: Path | None
) -> None:
    """What is trained and loaded is shown by the tests of heads; here is which rows there are."""
    opened: list[tuple[Path, str]] = []

    def drafting(plain: LanguageModel, path: Path, heads: str) -> LanguageModel:
        opened.append((path, heads.rpartition("/")[2]))
        return model("lookup")

    monkeypatch.setattr(llm_learned, "_load", lambda *_: model())
    monkeypatch.setattr(llm_learned, "_trained", lambda *_: 1.5)
    monkeypatch.setattr(llm_learned, "_drafting", drafting)
    monkeypatch.setattr(llm_learned.catalogue, "path", Path)
    monkeypatch.setattr(llm_learned, "MEASURED", ("Hello.",))
    figures = bench_learned(1, 512, steps=1, mtp_model=mtp_model)
    assert (figures["learned_mtp"] == NO_MTP) is (mtp_model is None)
    wanted = {(Path(llm_learned.MODEL), heads) for heads in ("early-exit:20", "medusa", "eagle")}
    assert set(opened) == wanted | ({(mtp_model, "mtp")} if mtp_model else set())
    for name in ("medusa", "eagle", "early_exit", *(["mtp"] if mtp_model else [])):
        assert figures[f"learned_{name}"]["over_plain"] > 0
    assert figures["learned_different_ids"] == 0


def test_a_peer_that_crashes_is_told_and_left_out(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(llm_cpp, "find_spec", lambda name: object())
    assert llm_cpp.llama_cpp_or_none(tmp_path / "no model", threads=1, context=128) is None
    assert "llama.cpp crashed" in (said := capfd.readouterr().err)
    assert "GGML_NATIVE=OFF" in said


def test_a_peer_that_is_not_installed_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(llm_cpp, "find_spec", lambda name: None)
    assert llm_cpp.llama_cpp_or_none(tmp_path / "no model", threads=1, context=128) is None
    assert "pip install" in capsys.readouterr().err
