"""Heads, feature layers and early exit on a tiny target: they draft for it, and change no reply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from llm.cache import CallCache, HiddenHistory, NoHiddenStates
from llm.checkpoints import Config
from llm.draft_gate import DraftGate, PassCosts
from llm.drafters.learned.compatibility import HeadsError
from llm.drafters.learned.early_exit import EarlyExitDrafting
from llm.drafters.learned.feature_drafter import FeatureDrafting
from llm.drafters.learned.feature_layer import Design, FeatureLayer, LayerCache
from llm.drafters.learned.load import DraftHeads
from llm.drafters.learned.medusa import MedusaDrafting, MedusaHeads
from llm.engine import Generation
from llm.fair_lock import FairLock
from llm.sampling import Sampling
from llm.training.dataset import Example, TrainingText, examples, head_matrix
from llm.training.loop import TrainingReport, train
from llm.training.train_eagle import EagleObjective
from llm.training.train_medusa import MedusaObjective
from llm.verify import Coupled, Rejection
from tests.llm.contract import UnderContract
from tests.llm.harness import generation
from tests.llm.learned.hidden_toys import HIDDEN, VOCABULARY, HiddenToy, hidden_toy, toy_replies
from tests.llm.toys import ToyTarget, random_rows

pytestmark = pytest.mark.usefixtures("one_torch_thread")  # layers this small are slower on two

PROMPT = (1, 2)
SIZES = Config("llama", 1, HIDDEN, 192, 4, 2, 36, VOCABULARY, 4096, 1e-5, tuple(np.geomspace(1, 1e-3, 18)))


def drafting(name: str, seed: int = 1) -> DraftHeads:
    """Each kind, untrained."""
    torch.manual_seed(seed)
    toy = hidden_toy()
    makers: dict[str, Callable[[], DraftHeads]] = {
        "medusa": lambda: MedusaDrafting(MedusaHeads(3, HIDDEN), toy),
        "medusa, own matrices": lambda: MedusaDrafting(MedusaHeads(3, HIDDEN, VOCABULARY), toy),
        "eagle": lambda: FeatureDrafting("eagle", FeatureLayer(SIZES), toy),
        "mtp": lambda: FeatureDrafting(
            "mtp",
            FeatureLayer(SIZES, Design(True, True, True, True, attention_bias=True, head_norms=True)),
            toy,
        ),
        "early-exit": lambda: EarlyExitDrafting(1, toy),
        "early-exit, whole": lambda: EarlyExitDrafting(2, toy),
    }
    return makers[name]()


KINDS = ("medusa", "medusa, own matrices", "eagle", "mtp", "early-exit", "early-exit, whole")


def run(
    heads: DraftHeads | None,
    temperature: float = 0.0,
    prompt: Sequence[int] = PROMPT,
    verifier: Coupled | Rejection | None = None,
) -> Generation:
    sampling = Sampling(temperature=temperature, top_p=0.95, max_tokens=60)
    toy = hidden_toy()
    made = generation(toy.rows, VOCABULARY, prompt, sampling, target=toy, verifier=verifier or Coupled())
    if heads is not None:
        made.proposer = DraftGate(
            [UnderContract(heads.open(made.cache))], PassCosts({1: 1.0, 16: 1.2}), VOCABULARY
        )
    list(made)
    return made


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize("name", KINDS)
def test_no_kind_changes_anything(name: str, temperature: float) -> None:
    for prompt in (PROMPT, tuple(range(12)) * 10):
        made = run(drafting(name), temperature, prompt)
        assert made.committed == run(None, temperature, prompt).committed
        assert made.stats.drafts > 0


@pytest.mark.parametrize("name", KINDS)
def test_under_rejection_each_draft_brings_its_distributions(name: str) -> None:
    made = run(drafting(name), 0.7, verifier=Rejection())
    assert len(made.committed) == 60
    assert made.stats.drafts > 0


def test_a_layer_count_that_is_the_whole_model_is_always_right() -> None:
    """A peek that went wrong by a position, or a cache that kept what a peek left, would show here."""
    for temperature in (0.0, 0.7):
        assert run(drafting("early-exit, whole"), temperature).stats.acceptance_rate == 1.0


@pytest.fixture(scope="module")
def dataset() -> list[Example]:
    return examples(hidden_toy(), [TrainingText(ids) for ids in toy_replies()])


@pytest.fixture(scope="module")
def medusa(dataset: list[Example]) -> tuple[MedusaHeads, TrainingReport]:
    heads = MedusaHeads(3, HIDDEN)
    told: list[float] = []
    report = train(
        MedusaObjective(heads, head_matrix(hidden_toy())),
        dataset,
        steps=200,
        learning_rate=0.02,
        progress=lambda step, loss: told.append(loss),
    )
    assert len(told) == 200
    return heads, report


@pytest.fixture(scope="module")
def eagle(dataset: list[Example]) -> tuple[FeatureLayer, TrainingReport]:
    torch.manual_seed(0)
    layer = FeatureLayer(SIZES)
    report = train(EagleObjective(layer, head_matrix(hidden_toy())), dataset, steps=150, learning_rate=0.004)
    return layer, report


def test_trained_medusa_heads_are_right_more_often(medusa: tuple[MedusaHeads, TrainingReport]) -> None:
    heads, report = medusa
    assert report.last_loss < report.first_loss / 2
    assert all(after > before for before, after in zip(report.before, report.after, strict=True))
    trained, untrained = run(MedusaDrafting(heads, hidden_toy())), run(drafting("medusa"))
    assert trained.committed == untrained.committed
    assert trained.stats.tokens_per_pass > max(2.0, untrained.stats.tokens_per_pass)
    assert trained.stats.acceptance_rate > 0.7  # type: ignore[operator]


def test_a_trained_eagle_head_is_right_more_often(eagle: tuple[FeatureLayer, TrainingReport]) -> None:
    layer, report = eagle
    assert report.after[0] > 0.6 > report.before[0]
    trained = run(FeatureDrafting("eagle", layer, hidden_toy()))
    assert trained.committed == run(None).committed
    assert trained.stats.tokens_per_pass > max(2.0, run(drafting("eagle")).stats.tokens_per_pass)


def test_the_same_seed_trains_the_same_heads(dataset: list[Example]) -> None:
    def weights() -> torch.Tensor:
        heads = MedusaHeads(2, HIDDEN)
        train(
            MedusaObjective(heads, head_matrix(hidden_toy())),
            dataset[:9],
            steps=5,
            learning_rate=0.01,
            seed=3,
        )
        return heads.heads[0].block.weight

    assert torch.equal(weights(), weights())


def test_a_feature_layer_reads_in_pieces_what_it_reads_at_once() -> None:
    torch.manual_seed(2)
    layer = FeatureLayer(SIZES).eval()
    states, embeddings = torch.randn(2, 9, HIDDEN)
    whole = layer(states, embeddings, 5, LayerCache())
    memory = LayerCache()
    first = layer(states[:4], embeddings[:4], 5, memory)
    layer(states[:2], embeddings[:2], 9, memory)  # drafted, and forgotten again
    memory.cut(0, 4)
    rest = layer(states[4:], embeddings[4:], 9, memory)
    torch.testing.assert_close(torch.cat([first, rest]), whole, atol=1e-5, rtol=0)


def test_heads_are_stored_under_the_publishers_names(tmp_path: Path) -> None:
    torch.manual_seed(3)
    heads = MedusaHeads(3, 8, 20)
    for head in heads.heads:
        torch.nn.init.normal_(head.block.weight)
    heads.save(tmp_path / "heads.safetensors")
    stored = load_file(tmp_path / "heads.safetensors")
    assert {"0.0.linear.weight", "2.0.linear.bias", "2.1.weight"} < set(stored)
    torch.save(stored, tmp_path / "medusa_lm_head.pt")
    hidden = torch.randn(5, 8)
    for name in ("heads.safetensors", "medusa_lm_head.pt"):
        again = MedusaHeads.load(tmp_path / name)
        assert torch.equal(again(hidden), heads(hidden))
        assert torch.equal(again.own_logits(again(hidden)), heads.own_logits(heads(hidden)))
    assert again.own_logits(again(hidden)).shape == (5, 3, 20)


def test_what_are_no_heads_is_told(tmp_path: Path) -> None:
    torch.save({"something": torch.zeros(2)}, tmp_path / "other.pt")
    with pytest.raises(HeadsError, match=r"other\.pt holds no Medusa heads"):
        MedusaHeads.load(tmp_path / "other.pt")


def test_training_needs_hidden_states_and_text() -> None:
    with pytest.raises(HeadsError, match="does not hand out hidden states"):
        examples(ToyTarget(random_rows(VOCABULARY), VOCABULARY), [TrainingText((1, 2, 3, 4, 5, 6, 7, 8))])
    with pytest.raises(HeadsError, match="too little to train on"):
        train(MedusaObjective(MedusaHeads(2, HIDDEN), torch.zeros(1)), [], steps=1, learning_rate=0.1)


def test_a_training_that_goes_astray_is_told() -> None:
    dataset = examples(hidden_toy(), [TrainingText((1, 2, 3) * 4), TrainingText((3, 2, 1) * 4)])
    objective = MedusaObjective(MedusaHeads(2, HIDDEN), head_matrix(hidden_toy()))
    with pytest.raises(HeadsError, match="lower learning rate"):
        train(objective, dataset, steps=9, learning_rate=1e30)


def test_heads_that_do_not_fit_are_told() -> None:
    toy = HiddenToy(random_rows(100), 100)
    with pytest.raises(HeadsError, match=r"101 tokens.* 100"):
        MedusaDrafting(MedusaHeads(2, HIDDEN, 101), toy)
    with pytest.raises(HeadsError, match=r"see 48 numbers.* 144"):
        MedusaDrafting(MedusaHeads(2, 48), toy)
    plain = ToyTarget(random_rows(100), 100)
    with pytest.raises(HeadsError, match="does not hand out hidden states"):
        MedusaDrafting(MedusaHeads(2, HIDDEN), plain)
    with pytest.raises(HeadsError, match="does not hand out hidden states"):
        FeatureDrafting("eagle", FeatureLayer(SIZES), plain)
    with pytest.raises(HeadsError, match="cannot run its first layers alone"):
        EarlyExitDrafting(1, plain)
    with pytest.raises(HeadsError, match=r"after 1 to 2 layers, not 3"):
        EarlyExitDrafting(3, toy)


def test_hidden_states_are_those_of_what_was_read() -> None:
    cache = CallCache(hidden_toy().open(), FairLock())
    with pytest.raises(NoHiddenStates):
        cache.hidden_since(0)
    cache.keep_hidden(4)
    cache.score([1, 2, 3], 0)
    start, states = cache.hidden_since(1)
    assert (start, len(states)) == (1, 2)
    assert states[1].argmax() == 2 * VOCABULARY + 3
    cache.truncate(2)
    assert len(cache.hidden_since(0)[1]) == 2
    cache.score([5, 6, 7], 1)
    start, states = cache.hidden_since(0)
    assert start == 1, "four are kept"
    assert [int(state.argmax()) % VOCABULARY for state in states] == [2, 5, 6, 7]
    with pytest.raises(NoHiddenStates):
        CallCache(ToyTarget(random_rows(4), 4).open(), FairLock()).keep_hidden(1)


def test_a_history_starts_anew_after_a_gap() -> None:
    history = HiddenHistory(8, 1)
    history.append(0, np.zeros((3, 1), np.float32))
    history.append(5, np.ones((2, 1), np.float32))
    start, states = history.between(0, 7)
    assert (start, len(states)) == (5, 2)
    assert len(history.between(0, 4)[1]) == 0


def test_what_a_head_costs_is_timed() -> None:
    ticks = iter(range(100))
    made = MedusaDrafting(MedusaHeads(4, HIDDEN), hidden_toy(), lambda: float(next(ticks)))
    assert made.seconds_per_token == 0.25
