"""EAGLE's head (Li et al., 2401.15077) on disk, as its authors publish it: config.json beside the weights.

The tensors are `fc.weight` (and `fc.bias`), which fuses [embedding, hidden state], and one decoder layer
`layers.0.…` under Hugging Face's names, without a norm before its attention. The embedding that some files
repeat is the target's own and is not read.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from llm.checkpoints import Config
from llm.checkpoints.safetensors_folder import decoder_config
from llm.drafters.learned.compatibility import HeadsError
from llm.drafters.learned.feature_layer import Design, FeatureLayer

WEIGHTS = "model.safetensors"
_NAMES = {
    "fuse": "fc",
    "query": "layers.0.self_attn.q_proj",
    "key": "layers.0.self_attn.k_proj",
    "value": "layers.0.self_attn.v_proj",
    "attention_output": "layers.0.self_attn.o_proj",
    "feed_forward_norm": "layers.0.post_attention_layernorm",
    "gate": "layers.0.mlp.gate_proj",
    "up": "layers.0.mlp.up_proj",
    "down": "layers.0.mlp.down_proj",
}


def load_eagle(folder: Path, config: Config | None = None) -> FeatureLayer:
    """`config`: the layer's sizes; None: those of the folder's config.json.

    Raises `HeadsError` where the folder holds no EAGLE head of the Llama and Qwen2 families.
    """
    try:
        tensors = _tensors(folder)
        design = Design(fuse_bias="fc.bias" in tensors, attention_bias=f"{_NAMES['query']}.bias" in tensors)
        layer = FeatureLayer(config or _config(folder), design)
        layer.load_state_dict({name: tensors[_published(name)].float() for name in layer.state_dict()})
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise HeadsError(f"{folder} holds no EAGLE head: {error}") from error
    return layer.eval()


def save_eagle(layer: FeatureLayer, folder: Path) -> None:
    """Write the weights into an existing folder."""
    tensors = {_published(name): tensor.contiguous() for name, tensor in layer.state_dict().items()}
    save_file(tensors, folder / WEIGHTS)


def _config(folder: Path) -> Config:
    source = folder / "config.json"
    values = json.loads(source.read_bytes())
    if isinstance(values, dict):
        values = {"architectures": ["LlamaForCausalLM"], **values}
    return decoder_config(values, source)


def _tensors(folder: Path) -> dict[str, torch.Tensor]:
    if (folder / WEIGHTS).exists():
        return load_file(folder / WEIGHTS)
    stored: dict[str, torch.Tensor] = torch.load(
        folder / "pytorch_model.bin", map_location="cpu", weights_only=True
    )
    return stored


def _published(name: str) -> str:
    role, _, kind = name.rpartition(".")
    return f"{_NAMES[role]}.{kind}"
