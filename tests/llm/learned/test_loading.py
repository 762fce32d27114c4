"""Draft heads on disk: published layouts, the checkpoint's own layer, and folders that know their model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding
from transformers.models.qwen2.modeling_qwen2 import Qwen2DecoderLayer

from llm.checkpoints import CheckpointError, read_checkpoint
from llm.drafters.learned.compatibility import HeadsError
from llm.drafters.learned.feature_layer import FeatureLayer, LayerCache
from llm.drafters.learned.load import load_heads, open_draft_heads, save_heads
from llm.drafters.learned.medusa import MedusaHeads
from llm.drafters.learned.mtp import load_mtp
from llm.language_model import Finished, LanguageModel, Message, Sampling
from llm.targets.base import Target
from llm.targets.load import load_target
from llm.training.train_eagle import new_eagle
from tests.llm.checkpoints.tiny import hugging_face_model, write_gguf
from tests.llm.toys import byte_tokenizer

SETTINGS: dict[str, Any] = {"vocab_size": 260}
HIDDEN = 64

MIMO = {
    "fuse": "model.mtp_layers.0.input_proj",
    "embedding_norm": "model.mtp_layers.0.token_layernorm",
    "hidden_norm": "model.mtp_layers.0.hidden_layernorm",
    "final_norm": "model.mtp_layers.0.final_layernorm",
    "layer": "model.mtp_layers.0",
}
DEEPSEEK = {
    "fuse": "model.layers.2.eh_proj",
    "embedding_norm": "model.layers.2.enorm",
    "hidden_norm": "model.layers.2.hnorm",
    "final_norm": "model.layers.2.shared_head.norm",
    "layer": "model.layers.2",
}


def folder_with_prediction(path: Path, names: dict[str, str], architecture: str) -> Path:
    """A tiny Qwen2 with a prediction layer, made of its second layer's weights changed a little."""
    hugging_face_model("qwen2", **SETTINGS).save_pretrained(path)
    torch.manual_seed(5)
    tensors = load_file(path / "model.safetensors")
    for name, tensor in list(tensors.items()):
        if name.startswith("model.layers.1."):
            place = name.replace("model.layers.1", names["layer"])
            tensors[place] = tensor + 0.05 * torch.randn_like(tensor)
    tensors[f"{names['fuse']}.weight"] = 0.1 * torch.randn(HIDDEN, 2 * HIDDEN)
    for norm in ("embedding_norm", "hidden_norm", "final_norm"):
        tensors[f"{names[norm]}.weight"] = 1 + 0.1 * torch.randn(HIDDEN)
    save_file(tensors, path / "model.safetensors", {"format": "pt"})
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | {"architectures": [architecture]}))
    return path


@pytest.fixture(scope="module")
def mimo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_with_prediction(tmp_path_factory.mktemp("mimo"), MIMO, "MiMoForCausalLM")


def reply(target: Target, sampling: Sampling, heads: str = "", path: Path = Path()) -> Finished:
    opened = open_draft_heads(heads, path, target) if heads else None
    model = LanguageModel(target, byte_tokenizer(), drafters=(), heads=opened)
    conversation = model.open()
    *_, last = conversation.reply([Message("user", "hello there")], sampling, cancelled=lambda: False)
    conversation.close()
    assert isinstance(last, Finished)
    return last


def check_drafts(path: Path, heads: str, name: str) -> None:
    """Something is drafted, and the reply is what plain decoding gives."""
    target = load_target(path, threads=1, context=256)
    for sampling in (Sampling(max_tokens=40), Sampling(max_tokens=40, temperature=0.9, seed=4)):
        drafted = reply(target, sampling, heads, path)
        assert drafted.ids == reply(target, sampling).ids
        assert drafted.stats.drafted[name] > 0


def test_mimos_layer_drafts(mimo: Path) -> None:
    checkpoint = read_checkpoint(mimo)
    assert checkpoint.config.layers == 2
    assert checkpoint.prediction is not None
    assert checkpoint.prediction.hidden_first
    check_drafts(mimo, "mtp", "mtp")


def test_deepseeks_layout_drafts(tmp_path: Path) -> None:
    path = folder_with_prediction(tmp_path / "deepseek", DEEPSEEK, "Qwen2ForCausalLM")
    found = read_checkpoint(path).prediction
    assert found is not None
    assert not found.hidden_first
    check_drafts(path, "mtp", "mtp")


@pytest.mark.parametrize("architecture", ["qwen2", "qwen3"])
def test_a_gguf_files_layer_drafts(tmp_path: Path, architecture: str) -> None:
    path = write_gguf(
        tmp_path / "nextn.gguf", "Q8_0", architecture=architecture, vocabulary=260, prediction_layers=1
    )
    assert read_checkpoint(path).config.layers == 2
    check_drafts(path, "mtp", "mtp")


def test_a_checkpoint_without_such_a_layer_is_told(tmp_path: Path) -> None:
    with pytest.raises(HeadsError, match="no multi-token-prediction layer"):
        load_mtp(write_gguf(tmp_path / "plain.gguf", "Q8_0"))


def test_a_prediction_layer_of_another_size_is_refused(mimo: Path, tmp_path: Path) -> None:
    tensors = load_file(mimo / "model.safetensors")
    tensors["model.mtp_layers.0.input_proj.weight"] = torch.zeros(HIDDEN, HIDDEN)
    save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text((mimo / "config.json").read_text())
    with pytest.raises(CheckpointError, match="prediction layer's fuse"):
        read_checkpoint(tmp_path)


def reference(kind: str, fused: torch.Tensor, weights: dict[str, torch.Tensor]) -> torch.Tensor:
    """transformers' own decoder layer on [n, hidden]; no norm before its attention if none is given."""
    config = hugging_face_model(kind, **SETTINGS).config
    config._attn_implementation = "eager"
    layer = (LlamaDecoderLayer if kind == "llama" else Qwen2DecoderLayer)(config, 0).eval()
    if "input_layernorm.weight" not in weights:
        layer.input_layernorm = torch.nn.Identity()
    layer.load_state_dict(weights)
    n = len(fused)
    mask = torch.full((n, n), float("-inf")).triu(1)[None, None]
    positions = LlamaRotaryEmbedding(config)(fused[None], torch.arange(n)[None])
    made = layer(fused[None], attention_mask=mask, position_embeddings=positions)
    return (made[0] if isinstance(made, tuple) else made).reshape(n, HIDDEN)


def part(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


@torch.no_grad()
def test_mimos_layer_is_computed_as_published(mimo: Path) -> None:
    tensors = load_file(mimo / "model.safetensors")
    layer = part(tensors, "model.mtp_layers.0.")
    states, embeddings = torch.randn(2, 7, HIDDEN)

    def norm(rows: torch.Tensor, name: str) -> torch.Tensor:
        return torch.nn.functional.rms_norm(rows, (HIDDEN,), layer.pop(f"{name}.weight"), 1e-6)

    seen, embedded = norm(states, "hidden_layernorm"), norm(embeddings, "token_layernorm")
    fused = torch.cat([seen, embedded], dim=-1) @ layer.pop("input_proj.weight").T
    final = layer.pop("final_layernorm.weight")
    expected = torch.nn.functional.rms_norm(reference("qwen2", fused, layer), (HIDDEN,), final, 1e-6)
    made = load_mtp(mimo)(states, embeddings, 0, LayerCache())
    torch.testing.assert_close(made, expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_an_eagle_head_is_stored_and_computed_as_published(tmp_path: Path) -> None:
    """Held to transformers' own decoder layer on the fused [embedding, hidden state]."""
    base = tmp_path / "base"
    hugging_face_model("llama", **SETTINGS).save_pretrained(base)
    layer = new_eagle(read_checkpoint(base))
    torch.nn.init.normal_(layer.fuse.weight, std=0.1)
    save_heads(layer, tmp_path / "eagle", base)
    states, embeddings = torch.randn(2, 7, HIDDEN)
    stored = load_file(tmp_path / "eagle" / "model.safetensors")
    fused = torch.cat([embeddings, states], dim=-1) @ stored["fc.weight"].T
    expected = reference("llama", fused, part(stored, "layers.0."))
    made = layer(states, embeddings, 0, LayerCache())
    torch.testing.assert_close(made, expected, atol=1e-5, rtol=1e-5)
    # Published: config.json and either file of weights.
    (tmp_path / "eagle" / "draft_heads.json").unlink()
    (tmp_path / "eagle" / "config.json").write_text((base / "config.json").read_text())
    again = load_heads(tmp_path / "eagle", base)
    assert isinstance(again, FeatureLayer)
    torch.testing.assert_close(again(states, embeddings, 0, LayerCache()), made)
    torch.save(stored, tmp_path / "eagle" / "pytorch_model.bin")
    (tmp_path / "eagle" / "model.safetensors").unlink()
    assert isinstance(load_heads(tmp_path / "eagle", base), FeatureLayer)
    (tmp_path / "eagle" / "config.json").write_text("[]")
    with pytest.raises(HeadsError, match=r"no EAGLE head: .*config\.json"):
        load_heads(tmp_path / "eagle", base)


def test_stored_heads_draft_for_their_model_and_refuse_another(mimo: Path, tmp_path: Path) -> None:
    other = write_gguf(tmp_path / "other.gguf", "Q8_0")
    kinds = {"medusa": MedusaHeads(2, HIDDEN), "eagle": new_eagle(read_checkpoint(mimo))}
    for kind, heads in kinds.items():
        place = tmp_path / kind
        save_heads(heads, place, mimo)
        check_drafts(mimo, str(place), kind)
        with pytest.raises(HeadsError, match=rf"trained on {mimo.name}, not on other\.gguf"):
            load_heads(place, other)


def test_what_are_no_draft_heads_is_told(mimo: Path, tmp_path: Path) -> None:
    target = load_target(mimo, threads=1, context=64)
    for wanted, message in (
        ("early-exit:some", "a number of layers"),
        ("early-exit:2", "after 1 to 1 layers"),
        (str(tmp_path / "absent"), "no draft heads at"),
        (str(tmp_path), "no EAGLE head"),
    ):
        with pytest.raises(HeadsError, match=message):
            open_draft_heads(wanted, mimo, target)
    (tmp_path / "draft_heads.json").write_text('{"kind": "hydra"}')
    with pytest.raises(HeadsError, match="damaged"):
        load_heads(tmp_path, mimo)
    (tmp_path / "draft_heads.json").write_text("[]")
    with pytest.raises(HeadsError, match="damaged"):
        load_heads(tmp_path, mimo)


def test_early_exit_drafts(mimo: Path) -> None:
    check_drafts(mimo, "early-exit:1", "early-exit")
