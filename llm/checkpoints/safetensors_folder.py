"""Reads a Hugging Face model folder: config.json beside safetensors files, whole or in shards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open

from llm.checkpoints.description import (
    Checkpoint,
    CheckpointError,
    Config,
    LayerWeights,
    PredictionLayer,
    UnsupportedCheckpoint,
    Vector,
    Weight,
)
from llm.checkpoints.rotary import inverse_frequencies, positive

ARCHITECTURES = {
    "LlamaForCausalLM": "llama",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "MiMoForCausalLM": "qwen2",
}
FORMATS = {torch.float16: "F16", torch.bfloat16: "BF16", torch.float32: "F32"}


def read_safetensors(folder: Path) -> Checkpoint:
    """Raises `CheckpointError` for missing or damaged files, `UnsupportedCheckpoint` for other models."""
    try:
        values = json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{folder} has no readable config.json ({error})") from error
    config = decoder_config(values, folder / "config.json")
    tensors = _Tensors(folder)
    embedding = tensors.matrix("model.embed_tokens.weight")
    tied = values.get("tie_word_embeddings", False) or "lm_head.weight" not in tensors
    return Checkpoint(
        name=folder.name,
        config=config,
        embedding=embedding,
        layers=tuple(_layer(tensors, f"model.layers.{number}") for number in range(config.layers)),
        final_norm=tensors.vector("model.norm.weight"),
        head=embedding if tied else tensors.matrix("lm_head.weight"),
        prediction=_prediction(tensors, config.layers),
    )


def decoder_config(values: Any, source: Path) -> Config:
    """What a config.json says that was read from `source`, which errors name.

    Raises `UnsupportedCheckpoint` for other models, `CheckpointError` for one with gaps.
    """
    try:
        return _config(values)
    except CheckpointError as error:
        raise type(error)(f"{source}: {error}") from error


def _config(values: Any) -> Config:
    if not isinstance(values, dict):
        raise CheckpointError(f"a model's configuration is due, not {type(values).__name__}")
    architectures = values.get("architectures") or ["?"]
    architecture = str(architectures[0] if isinstance(architectures, list) else architectures)
    if architecture not in ARCHITECTURES:
        raise UnsupportedCheckpoint(f"{architecture} is not one of {', '.join(ARCHITECTURES)}")
    if values.get("use_sliding_window") or values.get("mlp_bias"):
        raise UnsupportedCheckpoint("sliding windows and feed-forward biases are not supported")
    if values.get("hidden_act", "silu") != "silu":
        raise UnsupportedCheckpoint(f"activation {values['hidden_act']!r} is not supported")
    # transformers 5 writes theta and scaling as one `rope_parameters`; older releases as two keys.
    rope = values.get("rope_parameters") or values.get("rope_scaling") or {}
    if not isinstance(rope, dict):
        raise CheckpointError(f"its rotary scaling is {rope!r}, where an object is due")
    hidden, heads = _count(values, "hidden_size"), _count(values, "num_attention_heads")
    head_size = _count(values, "head_dim", hidden // heads)
    return Config(
        architecture=ARCHITECTURES[architecture],
        layers=_count(values, "num_hidden_layers"),
        hidden=hidden,
        feed_forward=_count(values, "intermediate_size"),
        heads=heads,
        key_value_heads=_count(values, "num_key_value_heads", heads),
        head_size=head_size,
        vocabulary=_count(values, "vocab_size"),
        context=_count(values, "max_position_embeddings"),
        norm_epsilon=positive(values, "rms_norm_eps"),
        inverse_frequencies=inverse_frequencies(
            head_size, positive({"rope_theta": 10_000.0} | values | rope, "rope_theta"), rope
        ),
    )


def _count(values: dict[str, Any], key: str, default: int | None = None) -> int:
    """A size. null stands for the default, as in transformers."""
    value = default if values.get(key) is None and default is not None else values.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise CheckpointError(f"{key} is {value!r}, where a whole number above 0 is due")
    return value


def _prediction(tensors: _Tensors, layers: int) -> PredictionLayer | None:
    """The layer as MiMo names its parts, or as DeepSeek-V3 does, after the last of the model's own."""
    mimo, deepseek = "model.mtp_layers.0", f"model.layers.{layers}"
    if f"{mimo}.input_proj.weight" in tensors:
        prefix, names = mimo, ("input_proj", "token_layernorm", "hidden_layernorm", "final_layernorm")
    elif f"{deepseek}.eh_proj.weight" in tensors:
        prefix, names = deepseek, ("eh_proj", "enorm", "hnorm", "shared_head.norm")
    else:
        return None
    fuse, embedding_norm, hidden_norm, final_norm = (f"{prefix}.{name}.weight" for name in names)
    return PredictionLayer(
        fuse=tensors.matrix(fuse),
        embedding_norm=tensors.vector(embedding_norm),
        hidden_norm=tensors.vector(hidden_norm),
        layer=_layer(tensors, prefix),
        final_norm=tensors.vector(final_norm),
        hidden_first=prefix == mimo,
    )


def _layer(tensors: _Tensors, prefix: str) -> LayerWeights:
    attention, feed_forward = f"{prefix}.self_attn", f"{prefix}.mlp"
    if f"{attention}.o_proj.bias" in tensors:
        raise UnsupportedCheckpoint("attention output biases are not supported")
    return LayerWeights(
        attention_norm=tensors.vector(f"{prefix}.input_layernorm.weight"),
        feed_forward_norm=tensors.vector(f"{prefix}.post_attention_layernorm.weight"),
        query=tensors.matrix(f"{attention}.q_proj.weight"),
        key=tensors.matrix(f"{attention}.k_proj.weight"),
        value=tensors.matrix(f"{attention}.v_proj.weight"),
        attention_output=tensors.matrix(f"{attention}.o_proj.weight"),
        gate=tensors.matrix(f"{feed_forward}.gate_proj.weight"),
        up=tensors.matrix(f"{feed_forward}.up_proj.weight"),
        down=tensors.matrix(f"{feed_forward}.down_proj.weight"),
        query_bias=tensors.optional(f"{attention}.q_proj.bias"),
        key_bias=tensors.optional(f"{attention}.k_proj.bias"),
        value_bias=tensors.optional(f"{attention}.v_proj.bias"),
        query_norm=tensors.optional(f"{attention}.q_norm.weight"),
        key_norm=tensors.optional(f"{attention}.k_norm.weight"),
    )


class _Tensors:
    """The tensors of all shards by name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._where: dict[str, Any] = {}
        files = sorted(folder.glob("*.safetensors"))
        if not files:
            raise CheckpointError(f"{folder} holds no .safetensors file")
        for file in files:
            try:
                shard: Any = safe_open(file, framework="pt")
            except (SafetensorError, OSError) as error:
                raise CheckpointError(f"{file} is cut short or damaged ({error}); fetch it again") from error
            self._where.update(dict.fromkeys(shard.keys(), shard))

    def __contains__(self, name: str) -> bool:
        return name in self._where

    def matrix(self, name: str) -> Weight:
        tensor = self._tensor(name)
        if tensor.dtype not in FORMATS:
            raise UnsupportedCheckpoint(f"{name} is {tensor.dtype}; supported: float16, bfloat16, float32")
        outputs, inputs = tensor.shape
        data = tensor.contiguous().view(torch.uint8).numpy()
        return Weight(FORMATS[tensor.dtype], outputs, inputs, data)

    def vector(self, name: str) -> Vector:
        return np.ascontiguousarray(self._tensor(name).float().numpy())

    def optional(self, name: str) -> Vector | None:
        return self.vector(name) if name in self else None

    def _tensor(self, name: str) -> torch.Tensor:
        if name not in self._where:
            raise CheckpointError(f"{self._folder} has no tensor {name!r}: it is not a whole model")
        tensor: torch.Tensor = self._where[name].get_tensor(name)
        return tensor
