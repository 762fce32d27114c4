"""The language benchmark's own logic: what it compares, and a peer that dies."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from bench import llm_cpp
from bench.llm_exactness import TURNS, different_bits, different_ids, turns
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
