"""Tiny random models, written as real checkpoints: GGUF in any block format, and Hugging Face folders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFWriter
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

# Where a block keeps its half-precision numbers, and values that make weights of about 0.05.
HALVES = {
    "Q4_0": {0: 0.008},
    "Q4_1": {0: 0.008, 2: -0.06},
    "Q5_0": {0: 0.004},
    "Q8_0": {0: 0.0006},
    "Q4_K": {0: 1.2e-4, 2: 9e-4},
    "Q5_K": {0: 6e-5, 2: 9e-4},
    "Q6_K": {208: 4e-5},
}


def random_blocks(form: str, outputs: int, inputs: int, random: np.random.Generator) -> np.ndarray:
    """A random matrix in a format's blocks: uint8 [outputs, bytes a row]."""
    if form in ("F32", "F16", "BF16"):
        values = torch.from_numpy(random.normal(0, 0.05, (outputs, inputs)).astype(np.float32))
        kinds = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
        return values.to(kinds[form]).view(torch.uint8).numpy()
    block_inputs, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType[form]]
    blocks = random.integers(0, 256, (outputs, inputs // block_inputs, block_bytes), dtype=np.uint8)
    for place, value in HALVES[form].items():
        scales = (value * random.uniform(0.5, 1.5, blocks.shape[:2])).astype(np.float16)
        blocks[..., place : place + 2] = scales[..., None].view(np.uint8)
    return blocks.reshape(outputs, -1)


def write_gguf(
    path: Path,
    form: str,
    *,
    architecture: str = "qwen2",
    hidden: int = 96,
    feed_forward: int = 160,
    heads: int = 3,
    key_value_heads: int = 1,
    vocabulary: int = 83,
    layers: int = 2,
    seed: int = 0,
    prediction_layers: int = 0,
    changed: Mapping[str, Any] | None = None,
) -> Path:
    """A random model with every matrix in one format, biases (Qwen2) or norms of heads (Qwen3) included.

    And with multi-token-prediction layers, if any, after its own. `changed`: fields of its architecture that
    say something else than the tensors.
    """
    random = np.random.default_rng(seed)
    size = hidden // heads
    writer = GGUFWriter(path, architecture)
    writer.add_block_count(layers + prediction_layers)
    writer.add_uint32(f"{architecture}.nextn_predict_layers", prediction_layers)
    writer.add_context_length(512)
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(feed_forward)
    writer.add_head_count(heads)
    writer.add_head_count_kv(key_value_heads)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    for key, value in (changed or {}).items():
        del writer.kv_data[0][f"{architecture}.{key}"]
        adders = {str: writer.add_string, int: writer.add_uint32, list: writer.add_array}
        adders[type(value)](f"{architecture}.{key}", value)

    def matrix(name: str, outputs: int, inputs: int) -> None:
        data = random_blocks(form, outputs, inputs, random)
        writer.add_tensor(f"{name}.weight", data, raw_dtype=GGMLQuantizationType[form])

    def vector(name: str, count: int, centre: float) -> None:
        writer.add_tensor(name, (centre + random.normal(0, 0.1, count)).astype(np.float32))

    matrix("token_embd", vocabulary, hidden)
    vector("output_norm.weight", hidden, 1)
    for number in range(layers + prediction_layers):
        block = f"blk.{number}"
        vector(f"{block}.attn_norm.weight", hidden, 1)
        vector(f"{block}.ffn_norm.weight", hidden, 1)
        matrix(f"{block}.attn_q", hidden, hidden)
        matrix(f"{block}.attn_k", key_value_heads * size, hidden)
        matrix(f"{block}.attn_v", key_value_heads * size, hidden)
        matrix(f"{block}.attn_output", hidden, hidden)
        matrix(f"{block}.ffn_gate", feed_forward, hidden)
        matrix(f"{block}.ffn_up", feed_forward, hidden)
        matrix(f"{block}.ffn_down", hidden, feed_forward)
        if architecture == "qwen2":
            vector(f"{block}.attn_q.bias", hidden, 0)
            vector(f"{block}.attn_k.bias", key_value_heads * size, 0)
            vector(f"{block}.attn_v.bias", key_value_heads * size, 0)
        if architecture == "qwen3":
            vector(f"{block}.attn_q_norm.weight", size, 1)
            vector(f"{block}.attn_k_norm.weight", size, 1)
        if number >= layers:
            matrix(f"{block}.nextn.eh_proj", hidden, 2 * hidden)
            for norm in ("enorm", "hnorm", "shared_head_norm"):
                vector(f"{block}.nextn.{norm}.weight", hidden, 1)
    _finish(writer)
    return path


def hugging_face_model(architecture: str, **settings: Any) -> PreTrainedModel:
    """A random model of transformers in float32."""
    torch.manual_seed(0)
    shared: dict[str, Any] = {
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "vocab_size": 90,
        "max_position_embeddings": 256,
        "tie_word_embeddings": False,
        "initializer_range": 0.2,
    }
    kinds = {
        "llama": (LlamaConfig, LlamaForCausalLM),
        "qwen2": (Qwen2Config, Qwen2ForCausalLM),
        "qwen3": (Qwen3Config, Qwen3ForCausalLM),
    }
    config, model = kinds[architecture]
    made = model(config(**(shared | settings))).eval()
    for (
        name,
        parameter,
    ) in made.named_parameters():  # biases and norms start as zeros and ones, which test nothing
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, mean=float("norm" in name), std=0.1)
    return made


def write_llama_gguf(path: Path, model: PreTrainedModel) -> Path:
    """A Llama of transformers as llama.cpp's converter writes it, rows of a head's halves interleaved."""
    config = model.config
    writer = GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    names = {
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
    }
    top = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    for name, tensor in model.state_dict().items():
        stem = name.removesuffix(".weight")
        array = tensor.numpy()
        if stem in top:
            writer.add_tensor(f"{top[stem]}.weight", array)
            continue
        _, _, number, role = stem.split(".", 3)
        if role.endswith(("q_proj", "k_proj")):
            heads = array.shape[0] // config.head_dim
            halves = array.reshape(heads, 2, config.head_dim // 2, -1)
            array = np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(array.shape)
        writer.add_tensor(f"blk.{number}.{names[role]}.weight", array)
    _finish(writer)
    return path


def _finish(writer: GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
