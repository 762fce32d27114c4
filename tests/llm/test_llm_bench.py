"""The language benchmark's own logic: what it compares, and a peer that dies."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from bench import llm_cpp, llm_learned
from bench.llm_exactness import TURNS, different_bits, different_ids, turns
from bench.llm_learned import NO_MTP, TRAINING, bench_learned, rows
from bench.llm_players import Rejoinder
from bench.llm_prompts import CHAT, QUESTIONS
from bench.llm_unseen import ablation, unseen_speeds
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


def test_unseen_agents_are_asked_and_graded_and_without_a_peer_there_is_no_ratio_to_it() -> None:
    players = {"rejoinder": Rejoinder(model("lookup")), "plain": Rejoinder(model())}
    figures = unseen_speeds(players, quick=True)
    assert figures["questions"] == 12
    assert figures["answers_right"] == 0, "a toy's answers"
    assert figures["over_plain"] > 0
    assert set(figures["tokens_per_second"]) == {"rejoinder", "plain"}
    assert not [name for name in figures if "llama_cpp" in name]


def test_an_ablation_has_a_row_for_each_set_of_drafters() -> None:
    rows = ablation({"none": Rejoinder(model()), "lookup alone": Rejoinder(model("lookup"))}, quick=True)
    assert rows["none"]["tokens_per_pass"] <= 1.0 < rows["lookup alone"]["tokens_per_pass"]


class Arithmetic(llm_cpp._Engine):
    """llama.cpp's process, arithmetic in the library's place: the last token and the place tell the next."""

    def __init__(self) -> None:
        self.cached: list[int] = []
        self.passes = self._begin = 0

    def read(self, ids: list[int], position: int, rows: int) -> float:
        assert len(self.cached) >= position, "a gap in the cache"
        self._begin, self.passes = position, self.passes + 1
        self.cached[position:] = ids
        return 0.0

    def _choice(self, index: int) -> int:
        known = self.cached[: self._begin + index + 1] if index >= 0 else self.cached
        return (known[-1] * 5 + len(known) // 9) % 11


class PromptLookup:
    """As the one of llama-cpp-python: what followed the last two tokens when they came before."""

    def __init__(self, num_pred_tokens: int) -> None:
        self._count = num_pred_tokens

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        for start in range(len(ids) - 3, -1, -1):
            if list(ids[start : start + 2]) == list(ids[-2:]):
                return ids[start + 2 : start + 2 + self._count]
        return ids[:0]


@pytest.mark.parametrize("ends", [[], [7]])
@pytest.mark.parametrize("most", [1, 2, 40])
def test_llama_cpp_with_its_lookup_writes_what_it_writes_without(
    most: int, ends: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    speculative = ModuleType("llama_cpp.llama_speculative")
    speculative.LlamaPromptLookupDecoding = PromptLookup  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "llama_cpp", ModuleType("llama_cpp"))
    monkeypatch.setitem(sys.modules, "llama_cpp.llama_speculative", speculative)
    prompt = [3, 4, 9, 1]
    plain, looking_up = Arithmetic(), Arithmetic()
    for engine in (plain, looking_up):
        engine.read(prompt[:2], 0, 1)
    expected = [token for token, _ in plain.write(prompt[2:], 2, most, ends)]
    written = [token for token, _ in looking_up.write_looking_up(prompt, 2, most, ends)]
    assert written == expected
    if most == 40 and not ends:
        assert looking_up.passes < plain.passes, "some guesses were right"
