"""Medusa heads: trained on a tiny target they draft for it, and the reply stays what it was."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from safetensors.torch import load_file

from llm.cache import CallCache, Turnstile
from llm.drafters.heads import HeadsError, Medusa, MedusaHeads, seconds_per_token, train_heads
from llm.engine import Generation
from llm.gate import Gate, PassCosts
from llm.language_model import LanguageModel
from llm.sampling import Sampling
from tests.llm.harness import generation
from tests.llm.test_explain import WordTokenizer
from tests.llm.toys import ToyCache, ToyTarget, random_rows

VOCABULARY, HIDDEN = 12, 48
PROMPT = (1, 2)


class HiddenToyCache(ToyCache):
    """Its hidden state is a fixed random code of the last two ids, all that its next token depends on."""

    _codes = np.random.default_rng(0).normal(size=(VOCABULARY, VOCABULARY, HIDDEN)).astype(np.float32)

    def hidden(self, rows: int) -> npt.NDArray[np.float32]:
        ends = range(len(self.ids) - rows, len(self.ids))
        return np.stack([self._codes[self.ids[i - 1] if i else 0, self.ids[i]] for i in ends])


class HiddenToy(ToyTarget):
    def open(self) -> HiddenToyCache:
        return HiddenToyCache(self)


def target() -> HiddenToy:
    return HiddenToy(random_rows(VOCABULARY, seed=6, sharpness=4.0, memory=2), VOCABULARY)


def texts() -> list[tuple[int, ...]]:
    """The target's own replies to many prompts."""
    replies = []
    for a in range(VOCABULARY):
        for b in range(VOCABULARY):
            made = generation(target().rows, VOCABULARY, (a, b), Sampling(max_tokens=12), target=target())
            replies.append((a, b, *made))
    return replies


@pytest.fixture(scope="module")
def heads() -> MedusaHeads:
    losses: list[float] = []
    made = train_heads(
        target(),
        texts(),
        count=3,
        epochs=40,
        learning_rate=0.01,
        progress=lambda _, x: losses.append(x),
    )
    assert losses[-1] < losses[0] / 3
    return made


def run(heads: MedusaHeads | None, temperature: float = 0.0, prompt: Sequence[int] = PROMPT) -> Generation:
    sampling = Sampling(temperature=temperature, max_tokens=60)
    made = generation(target().rows, VOCABULARY, prompt, sampling, target=target())
    if heads is not None:
        drafter = Medusa(heads, made.cache, seconds_per_token=1e-3)
        made.proposer = Gate([drafter], PassCosts({1: 1.0, 16: 1.2}), VOCABULARY)
    list(made)
    return made


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_trained_heads_draft_and_change_nothing(heads: MedusaHeads, temperature: float) -> None:
    plain, drafted = run(None, temperature), run(heads, temperature)
    assert drafted.committed == plain.committed
    if temperature == 0.0:
        assert drafted.stats.tokens_per_pass > 2.0
        assert drafted.stats.acceptance_rate > 0.7  # type: ignore[operator]


def test_untrained_heads_change_nothing() -> None:
    torch.manual_seed(1)
    assert run(MedusaHeads(3, HIDDEN, VOCABULARY)).committed == run(None).committed


def test_heads_are_stored_under_the_publishers_names(heads: MedusaHeads, tmp_path: Path) -> None:
    heads.save(tmp_path / "heads.safetensors")
    stored = load_file(tmp_path / "heads.safetensors")
    assert {"0.0.linear.weight", "2.0.linear.bias", "2.1.weight"} < set(stored)
    torch.save(stored, tmp_path / "medusa_lm_head.pt")
    hidden = torch.randn(5, HIDDEN)
    for name in ("heads.safetensors", "medusa_lm_head.pt"):
        again = MedusaHeads.load(tmp_path / name)
        assert torch.equal(again(hidden), heads(hidden))
    assert again(hidden).shape == (5, 3, VOCABULARY)


def test_what_are_no_heads_is_told(tmp_path: Path) -> None:
    torch.save({"something": torch.zeros(2)}, tmp_path / "other.pt")
    with pytest.raises(HeadsError, match=r"other\.pt holds no Medusa heads"):
        MedusaHeads.load(tmp_path / "other.pt")


def test_training_needs_hidden_states_and_text() -> None:
    plain = ToyTarget(random_rows(VOCABULARY), VOCABULARY)
    with pytest.raises(HeadsError, match="does not hand out hidden states"):
        train_heads(plain, [(1, 2, 3, 4, 5, 6, 7, 8)])
    with pytest.raises(HeadsError, match="no text is longer"):
        train_heads(target(), [(1, 2)])


def test_heads_that_do_not_fit_are_told() -> None:
    def model(toy: ToyTarget, made: MedusaHeads) -> LanguageModel:
        return LanguageModel(toy, WordTokenizer(), heads=made)

    rows = random_rows(100)
    with pytest.raises(HeadsError, match=r"101 tokens.* 100"):
        model(HiddenToy(rows, 100), MedusaHeads(2, HIDDEN, 101))
    with pytest.raises(HeadsError, match="does not hand out hidden states"):
        model(ToyTarget(rows, 100), MedusaHeads(2, HIDDEN, 100))


def test_hidden_states_are_those_of_the_last_pass() -> None:
    cache = CallCache(target().open(), Turnstile())
    assert cache.hidden_at(0) is None
    cache.score([1, 2, 3], 2)
    assert cache.hidden_at(0) is None
    state = cache.hidden_at(2)
    assert state is not None
    assert np.array_equal(state, HiddenToyCache._codes[2, 3])
    cache.truncate(2)
    assert cache.hidden_at(2) is None


def test_what_a_head_costs_is_timed() -> None:
    ticks = iter(range(100))
    assert seconds_per_token(MedusaHeads(4, 8, 16), lambda: float(next(ticks))) == 0.25
