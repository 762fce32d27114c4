"""The C++ kernel: exact rows on every path and format, held to a float32 forward of the same weights."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from llm.checkpoints import CheckpointError, UnsupportedCheckpoint, read_checkpoint
from llm.checkpoints.description import WEIGHT_FORMATS
from llm.targets.base import NonFiniteLogits, Target
from llm.targets.cpu.target import CpuTarget
from llm.targets.float_target import FloatTarget
from tests.llm.checkpoints.tiny import write_gguf
from tests.llm.targets.contract import check_contract, differing_rows, random_ids, rows_alone
from tests.llm.targets.contract_copies import check_copies
from tests.llm.targets.contract_hidden import check_hidden, check_peeks
from tests.machine import needs_processor

Tiny = Callable[..., Path]
Load = Callable[..., CpuTarget]

PATHS = ("amx", "avx512-vnni", "avx2", "portable")


@pytest.fixture(params=PATHS)
def instructions(request: pytest.FixtureRequest, kernel: ModuleType) -> str:
    needs_processor(request.param, kernel.supported_paths())
    return str(request.param)


@pytest.mark.parametrize("form", WEIGHT_FORMATS)
def test_rows_have_the_same_bits_in_every_block(
    tiny: Tiny, cpu_target: Load, instructions: str, form: str
) -> None:
    target = cpu_target(tiny(form), instructions)
    ids = random_ids(target, 150)
    reference = rows_alone(target, ids)
    assert differing_rows(target, ids, reference, trials=3, threads=(1, 2, 3)) == 0
    target.threads = 2
    assert np.array_equal(target.open().extend(ids, 150), reference)  # in chunks of a prefill


@pytest.mark.parametrize("form", WEIGHT_FORMATS)
@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
def test_logits_are_near_those_of_floats(tiny: Tiny, cpu_target: Load, form: str, architecture: str) -> None:
    """8-bit activations cost about half a percent of the logits' spread; anything wrong costs all of it."""
    path = tiny(form, architecture)
    target, exact = cpu_target(path), FloatTarget(read_checkpoint(path), context=512)
    ids = random_ids(target, 40)
    logits, expected = target.open().extend(ids, 40), exact.open().extend(ids, 40)
    assert np.abs(logits - expected).mean() < 0.03 * expected.std()


@pytest.mark.parametrize("form", ["Q4_K", "Q6_K", "Q8_0"])
def test_paths_agree_but_for_rounding(tiny: Tiny, cpu_target: Load, instructions: str, form: str) -> None:
    best, other = cpu_target(tiny(form)), cpu_target(tiny(form), instructions)
    ids = random_ids(best, 24)
    logits, expected = other.open().extend(ids, 24), best.open().extend(ids, 24)
    assert np.abs(logits - expected).mean() < 0.02 * expected.std()


@pytest.mark.parametrize("form", WEIGHT_FORMATS)
def test_tiles_of_amx_give_the_bits_of_the_vectors(
    tiny: Tiny, cpu_target: Load, kernel: ModuleType, form: str
) -> None:
    needs_processor("amx", kernel.supported_paths())
    tiles, vectors = cpu_target(tiny(form), "amx"), cpu_target(tiny(form), "avx512-vnni")
    ids = random_ids(tiles, 53)
    assert np.array_equal(tiles.open().extend(ids, 53), vectors.open().extend(ids, 53))


def test_contract(tiny: Tiny, cpu_target: Load) -> None:
    target = cpu_target(tiny("Q4_1"))
    assert isinstance(target, Target)
    check_contract(target, tolerance=0)


@pytest.mark.parametrize("form", ["Q4_K", "Q5_0"])
def test_a_call_that_begins_with_a_copy_has_the_same_bits(
    tiny: Tiny, cpu_target: Load, instructions: str, form: str
) -> None:
    for threads in (1, 2):
        check_copies(cpu_target(tiny(form), instructions, threads=threads), tolerance=0)


@pytest.mark.parametrize("form", ["Q4_K", "Q5_0", "F16"])
def test_hidden_states_have_the_same_bits_in_every_block(
    tiny: Tiny, cpu_target: Load, instructions: str, form: str
) -> None:
    for threads in (1, 2):
        check_hidden(cpu_target(tiny(form), instructions, threads=threads), tolerance=0)


def test_the_first_layers_run_alone(tiny: Tiny, cpu_target: Load, instructions: str) -> None:
    check_peeks(cpu_target(tiny("Q4_1"), instructions))


def test_a_real_model_keeps_its_bits(smallest: Path, cpu_target: Load) -> None:
    target = cpu_target(smallest, threads=2)
    ids = random_ids(target, 120)
    reference = rows_alone(target, ids)
    assert differing_rows(target, ids, reference, trials=3, threads=(1, 2)) == 0
    check_hidden(target, tolerance=0)
    check_copies(target, tolerance=0)


def test_calls_run_side_by_side(tiny: Tiny, cpu_target: Load) -> None:
    """Four calls on four threads of two models, each with a team of two: every one has its own bits."""
    targets = [cpu_target(tiny("Q4_0"), threads=2), cpu_target(tiny("Q5_K"), threads=2)]
    ids = random_ids(targets[0], 60)
    expected = [rows_alone(target, ids) for target in targets]
    wrong: list[int] = []

    def call(number: int) -> None:
        cache = targets[number % 2].open()
        for start in range(0, 60, 6):
            logits = cache.extend(ids[start : start + 6], 6)
            if not np.array_equal(logits, expected[number % 2][start : start + 6]):
                wrong.append(start)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_memory_grows_with_the_call(tiny: Tiny, cpu_target: Load) -> None:
    target = cpu_target(tiny("Q4_0"))
    cache = target.open()
    cache.extend(random_ids(target, 10), 1)
    small = cache.memory
    cache.extend(random_ids(target, 300), 1)
    per_position = 2 * 2 * 1 * 32 * 4  # keys and values, layers, key-value heads, head size, float32
    assert cache.memory - small >= 256 * per_position
    cache.close()
    assert cache.memory == 0


def test_a_logit_that_is_not_finite_is_an_error(tmp_path: Path, cpu_target: Load) -> None:
    path = write_gguf(tmp_path / "broken.gguf", "F32")
    checkpoint = read_checkpoint(path)
    offset = path.read_bytes().find(checkpoint.final_norm.tobytes())
    with path.open("r+b") as stream:
        stream.seek(offset)
        stream.write(np.float32("nan").tobytes())
    cache = cpu_target(path).open()
    cache.extend([1, 2, 3], 0)
    with pytest.raises(NonFiniteLogits):
        cache.extend([4], 1)
    assert cache.length == 3


def test_bad_settings_are_refused(tiny: Tiny, cpu_target: Load, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="context must be"):
        cpu_target(tiny("Q4_0"), context=100_000)
    with pytest.raises(ValueError, match="threads"):
        cpu_target(tiny("Q4_0"), threads=0)
    with pytest.raises(ValueError, match="no path called"):
        cpu_target(tiny("Q4_0"), "vector-unit")
    odd = write_gguf(tmp_path / "odd.gguf", "F32", hidden=48, heads=3)
    with pytest.raises(UnsupportedCheckpoint, match="multiple of 32"):
        cpu_target(odd)
    with pytest.raises(CheckpointError, match="no checkpoint"):
        cpu_target(tmp_path / "absent.gguf")
