"""The engines on torch: exact integers, floats with a tolerance, transformers' models; which is chosen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Qwen2Config, Qwen2ForCausalLM

from llm.checkpoints import CheckpointError, UnsupportedCheckpoint, read_checkpoint
from llm.fair_lock import FairLock
from llm.shared_prompt import shared_prompts
from llm.targets import load
from llm.targets.base import NonFiniteLogits, Target
from llm.targets.cpu.build import CompilerMissing
from llm.targets.exact_target import ExactTarget
from llm.targets.float_target import FloatTarget
from llm.targets.load import load_target
from llm.targets.transformers_target import TransformersTarget, load_transformers
from tests.llm.checkpoints.tiny import hugging_face_model
from tests.llm.targets.contract import check_contract, differing_rows, random_ids, rows_alone
from tests.llm.targets.contract_copies import check_copies
from tests.llm.targets.contract_hidden import check_hidden, check_peeks

Tiny = Callable[..., Path]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Qwen2 of transformers."""
    path = tmp_path_factory.mktemp("qwen2")
    hugging_face_model("qwen2").save_pretrained(path)
    return path


@pytest.mark.parametrize(("form", "architecture"), [("Q4_K", "qwen2"), ("Q8_0", "llama"), ("F32", "qwen3")])
def test_exact_rows_without_a_compiler(tiny: Tiny, form: str, architecture: str) -> None:
    target = ExactTarget(read_checkpoint(tiny(form, architecture)), context=512, threads=1)
    ids = random_ids(target, 50)
    assert differing_rows(target, ids, rows_alone(target, ids), trials=2, threads=(1,)) == 0


def test_exact_target_is_near_the_floats(tiny: Tiny) -> None:
    checkpoint = read_checkpoint(tiny("Q4_K"))
    exact = ExactTarget(checkpoint, context=512, threads=1)
    floats = FloatTarget(checkpoint, context=512)
    ids = random_ids(exact, 40)
    logits, expected = exact.open().extend(ids, 40), floats.open().extend(ids, 40)
    assert np.abs(logits - expected).mean() < 0.01 * expected.std()


def test_exact_target_keeps_the_contract(tiny: Tiny) -> None:
    target = ExactTarget(read_checkpoint(tiny("Q4_1")), context=512, threads=1)
    assert isinstance(target, Target)
    check_contract(target, tolerance=0)
    check_copies(target, tolerance=0)
    check_hidden(target, tolerance=0)
    check_peeks(target)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_float_target_keeps_the_contract_within_its_tolerance(folder: Path, dtype: torch.dtype) -> None:
    target = FloatTarget(read_checkpoint(folder), context=128, dtype=dtype)
    assert isinstance(target, Target)
    assert not target.exact_rows
    check_contract(target, tolerance=max(target.logit_tolerance, 1e-4))
    check_copies(target, tolerance=max(target.logit_tolerance, 1e-4))
    check_hidden(target, tolerance=max(target.logit_tolerance, 1e-4))


def test_transformers_target_is_transformers(folder: Path) -> None:
    target = load_transformers(folder, context=128, threads=1, dtype=torch.float32)
    ids = random_ids(target, 20)
    expected = target.model(torch.tensor([ids])).logits[0].detach().numpy()
    np.testing.assert_allclose(target.open().extend(ids, 20), expected, atol=1e-4)
    check_contract(target, tolerance=1e-4)
    check_copies(target, tolerance=1e-4)
    check_hidden(target, tolerance=1e-4)


def test_a_model_whose_cache_forgets_shares_no_prompt() -> None:
    sliding = Qwen2Config(
        **dict.fromkeys(("hidden_size", "intermediate_size", "vocab_size"), 32),
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        use_sliding_window=True,
        sliding_window=16,
        max_window_layers=0,
    )
    target = TransformersTarget(Qwen2ForCausalLM(sliding).eval(), "sliding", context=64, threads=1)
    assert target.position_bytes == 0
    cache = target.open()
    cache.extend([1, 2, 3], 1)
    with pytest.raises(ValueError, match="cannot be copied"):
        cache.copy_out(2)
    assert shared_prompts(target, FairLock()) is None


def test_a_logit_that_is_not_finite_is_an_error(folder: Path) -> None:
    model = hugging_face_model("qwen2")
    target = TransformersTarget(model, "broken", context=64, threads=1)
    cache = target.open()
    cache.extend([1, 2, 3], 1)
    torch.nn.init.constant_(model.model.norm.weight, float("nan"))
    with pytest.raises(NonFiniteLogits):
        cache.extend([4], 1)
    assert cache.length == 3


def test_what_was_not_finite_leaves_nothing_behind(folder: Path) -> None:
    target = FloatTarget(read_checkpoint(folder), context=64)
    cache = target.open()
    cache.extend([1, 2, 3], 1)
    expected = target.open().extend([1, 2, 3, 4], 1)
    target.weights["embedding"] = target.weights["embedding"].clone()
    target.weights["embedding"][7] = float("nan")
    with pytest.raises(NonFiniteLogits):
        cache.extend([6, 7], 1)
    np.testing.assert_allclose(cache.extend([4], 1), expected, atol=1e-4)


def test_the_first_engine_that_can_is_chosen(
    folder: Path, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "gpt2"
    GPT2LMHeadModel(
        GPT2Config(n_layer=1, n_head=2, n_embd=32, vocab_size=60, n_positions=64)
    ).save_pretrained(other)
    assert "transformers" in load_target(other, threads=1, context=64).name
    assert "torch" in load_target(folder, threads=1, context=64, backend="torch").name
    assert load_target(tiny("Q4_0"), threads=1, context=10_000).context == 512

    def no_compiler(*_: object, **__: object) -> Target:
        raise CompilerMissing("no C++ compiler was found")

    told: list[str] = []
    monkeypatch.setattr(load, "load_cpu_target", no_compiler)
    target = load_target(tiny("Q4_0"), threads=1, context=64, progress=told.append)
    assert target.exact_rows
    assert "no C++ compiler" in told[0]
    with pytest.raises(CompilerMissing):
        load_target(tiny("Q4_0"), threads=1, context=64, backend="cpu")


def test_what_no_engine_reads_is_told(tiny: Tiny, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedCheckpoint, match="gemma3"):
        load_target(tiny("Q4_0", "gemma3"), threads=1, context=64)
    with pytest.raises(CheckpointError, match="no checkpoint"):
        load_target(tmp_path / "absent", threads=1, context=64)
