from pathlib import Path

import numpy as np
import pytest
import torch

from llm.checkpoints import CheckpointError, UnsupportedCheckpoint, fingerprint, read_checkpoint
from llm.checkpoints.description import WEIGHT_FORMATS, Weight
from llm.targets.float_target import FloatTarget
from tests.llm.checkpoints.tiny import hugging_face_model, random_blocks, write_gguf, write_llama_gguf

IDS = [3, 14, 15, 9, 26, 5, 35, 8, 9, 79, 32]


def test_reads_sizes_and_roles(tmp_path: Path) -> None:
    checkpoint = read_checkpoint(write_gguf(tmp_path / "tiny.gguf", "Q4_1"))
    config = checkpoint.config
    assert (config.hidden, config.feed_forward, config.heads, config.key_value_heads) == (96, 160, 3, 1)
    assert (config.head_size, config.vocabulary, config.context, config.layers) == (32, 83, 512, 2)
    assert config.inverse_frequencies[:2] == pytest.approx((1.0, 10_000 ** (-2 / 32)))
    assert checkpoint.head is checkpoint.embedding
    assert checkpoint.layers[0].gate.format == "Q4_1"
    assert checkpoint.layers[0].query_bias is not None
    assert checkpoint.layers[0].query_norm is None


@pytest.mark.parametrize("form", WEIGHT_FORMATS)
def test_rows_are_the_matrix_in_part(form: str) -> None:
    data = random_blocks(form, 6, 512, np.random.default_rng(1))
    weight = Weight(form, 6, 512, data)
    whole = weight.dequantise()
    assert whole.shape == (6, 512)
    assert 0.01 < np.abs(whole).mean() < 0.2
    assert np.array_equal(weight.rows(np.array([4, 1])), whole[[4, 1]])


def test_llama_rows_are_put_back_into_halves(tmp_path: Path) -> None:
    """The same model through transformers and through llama.cpp's row order gives the same logits."""
    model = hugging_face_model("llama")
    checkpoint = read_checkpoint(write_llama_gguf(tmp_path / "llama.gguf", model))
    expected = model(torch.tensor([IDS])).logits[0].detach().numpy()
    logits = FloatTarget(checkpoint, context=64).open().extend(IDS, len(IDS))
    np.testing.assert_allclose(logits, expected, atol=2e-4)


@pytest.mark.parametrize("kept", [0, 10, 500, 0.5, 0.999])
def test_a_cut_file_is_refused(tmp_path: Path, kept: float) -> None:
    path = write_gguf(tmp_path / "cut.gguf", "Q8_0")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole)) if kept < 1 else int(kept)])
    with pytest.raises(CheckpointError, match=r"cut short|damaged"):
        read_checkpoint(path)


def test_other_models_and_missing_files_are_told_apart(tmp_path: Path) -> None:
    other = write_gguf(tmp_path / "other.gguf", "Q8_0", architecture="gemma3")
    with pytest.raises(UnsupportedCheckpoint, match="gemma3"):
        read_checkpoint(other)
    with pytest.raises(CheckpointError, match="no checkpoint at"):
        read_checkpoint(tmp_path / "absent.gguf")
    (tmp_path / "text.gguf").write_text("This is not a model at all, only some text that is long enough.")
    with pytest.raises(CheckpointError, match="not a whole GGUF file"):
        read_checkpoint(tmp_path / "text.gguf")


@pytest.mark.parametrize(("key", "value"), [("embedding_length", "96"), ("attention.head_count_kv", [1, 1])])
def test_a_field_that_is_no_number_is_told(tmp_path: Path, key: str, value: object) -> None:
    """A model may have a number of heads for each layer, in a list: not one of this family."""
    path = write_gguf(tmp_path / "odd.gguf", "Q8_0", changed={key: value})
    with pytest.raises(CheckpointError, match=rf"odd\.gguf: {key} is .*, where a number is due"):
        read_checkpoint(path)


def test_a_model_without_heads_is_told(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "odd.gguf", "Q8_0", changed={"attention.head_count": 0})
    with pytest.raises(CheckpointError, match="not positive"):
        read_checkpoint(path)


def test_fingerprint_names_content(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "a.gguf", "Q8_0")
    copy = tmp_path / "b.gguf"
    copy.write_bytes(path.read_bytes())
    assert fingerprint(copy) == fingerprint(path)
    changed = bytearray(path.read_bytes())
    changed[-5] ^= 1
    copy.write_bytes(changed)
    assert fingerprint(copy) != fingerprint(path)
