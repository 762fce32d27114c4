import json
from pathlib import Path

import numpy as np
import pytest
import torch

from llm.checkpoints import CheckpointError, UnsupportedCheckpoint, read_checkpoint
from llm.targets.float_target import FloatTarget
from llm.targets.transformers_target import load_transformers
from tests.llm.checkpoints.tiny import hugging_face_model

IDS = [3, 14, 15, 9, 26, 5, 35, 8, 9, 79, 32]


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("tied", [True, False])
def test_logits_are_those_of_transformers(tmp_path: Path, architecture: str, tied: bool) -> None:
    model = hugging_face_model(architecture, tie_word_embeddings=tied)
    model.save_pretrained(tmp_path, max_shard_size="40KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    checkpoint = read_checkpoint(tmp_path)
    assert (checkpoint.head is checkpoint.embedding) == tied
    logits = FloatTarget(checkpoint, context=64).open().extend(IDS, len(IDS))
    expected = model(torch.tensor([IDS])).logits[0].detach().numpy()
    np.testing.assert_allclose(logits, expected, atol=2e-4)


@pytest.mark.parametrize(
    "scaling",
    [
        {"rope_type": "linear", "factor": 4.0},
        {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        },
    ],
)
def test_long_context_scaling_is_that_of_transformers(tmp_path: Path, scaling: dict[str, object]) -> None:
    model = hugging_face_model("llama", rope_parameters={"rope_theta": 5000.0, **scaling})
    model.save_pretrained(tmp_path)
    expected = model.model.rotary_emb.inv_freq.numpy()
    frequencies = np.array(read_checkpoint(tmp_path).config.inverse_frequencies)
    np.testing.assert_allclose(frequencies, expected, rtol=1e-6)


def test_bfloat16_is_read_exactly(tmp_path: Path) -> None:
    model = hugging_face_model("qwen2").to(torch.bfloat16)
    model.save_pretrained(tmp_path)
    weight = read_checkpoint(tmp_path).layers[1].down
    assert weight.format == "BF16"
    expected = model.model.layers[1].mlp.down_proj.weight.float().detach().numpy()
    assert np.array_equal(weight.dequantise(), expected)


def test_damage_is_told(tmp_path: Path) -> None:
    hugging_face_model("qwen2").save_pretrained(tmp_path)
    tensors, config = tmp_path / "model.safetensors", tmp_path / "config.json"
    whole = tensors.read_bytes()
    tensors.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CheckpointError, match="cut short or damaged"):
        read_checkpoint(tmp_path)
    tensors.unlink()
    with pytest.raises(CheckpointError, match=r"no \.safetensors"):
        read_checkpoint(tmp_path)
    config.write_text("{")
    with pytest.raises(CheckpointError, match=r"config\.json"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_size": None},
        {"hidden_size": "64"},
        {"vocab_size": [90]},
        {"num_attention_heads": 0},
        {"rms_norm_eps": "small"},
        {"rope_parameters": "linear"},
        {"rope_parameters": {"rope_theta": None}},
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": None}},
        {"architectures": [["Qwen2ForCausalLM"]]},
    ],
)
def test_a_configuration_with_something_else_than_numbers_is_told(
    tmp_path: Path, change: dict[str, object]
) -> None:
    hugging_face_model("qwen2").save_pretrained(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | change))
    with pytest.raises(CheckpointError, match=rf"{tmp_path.name}/config\.json: "):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize("text", ["[1]", "null", "3", '"Qwen2ForCausalLM"'])
def test_a_configuration_that_is_no_object_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match=rf"{tmp_path.name}/config\.json: "):
        read_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match=tmp_path.name):
        load_transformers(tmp_path, context=8, threads=1)


def test_as_many_key_value_heads_as_heads_may_be_left_out(tmp_path: Path) -> None:
    hugging_face_model("qwen2", num_key_value_heads=2).save_pretrained(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"num_key_value_heads": None}))
    assert read_checkpoint(tmp_path).config.key_value_heads == 2


@pytest.mark.parametrize(
    "change",
    [
        {"architectures": ["GPT2LMHeadModel"]},
        {"use_sliding_window": True},
        {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0}},
    ],
)
def test_what_the_family_lacks_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    hugging_face_model("qwen2").save_pretrained(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | change))
    with pytest.raises(UnsupportedCheckpoint):
        read_checkpoint(tmp_path)


def test_a_configuration_that_does_not_fit_the_tensors_is_refused(tmp_path: Path) -> None:
    hugging_face_model("qwen2").save_pretrained(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"intermediate_size": 128}))
    with pytest.raises(CheckpointError, match="gate has shape"):
        read_checkpoint(tmp_path)
