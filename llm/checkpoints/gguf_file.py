"""Reads a GGUF checkpoint (llama.cpp's container) through the `gguf` package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader, ReaderTensor

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
from llm.checkpoints.rotary import inverse_frequencies

ARCHITECTURES = ("llama", "qwen2", "qwen3")


def read_gguf(path: Path) -> Checkpoint:
    """Reads the file's header and maps its tensors.

    Raises `CheckpointError` when the file is not GGUF, cut short or incomplete, `UnsupportedCheckpoint` for
    other architectures.
    """
    try:
        reader = GGUFReader(path)
    except Exception as error:  # the package raises whatever its array views run into
        raise CheckpointError(
            f"{path.name} is not a whole GGUF file (cut short or damaged: {error}); fetch it again"
        ) from error
    return _Reading(path, reader).checkpoint()


class _Reading:
    """One file being read: finds fields and tensors by GGUF's names."""

    def __init__(self, path: Path, reader: GGUFReader) -> None:
        self._path = path
        self._reader = reader
        self._size = path.stat().st_size
        self._tensors: dict[str, ReaderTensor] = {tensor.name: tensor for tensor in reader.tensors}
        self._architecture = str(self._field("general.architecture"))
        if self._architecture not in ARCHITECTURES:
            raise UnsupportedCheckpoint(
                f"{path.name} is a {self._architecture!r} model; supported: {', '.join(ARCHITECTURES)}"
            )

    def checkpoint(self) -> Checkpoint:
        config = self._config()
        embedding = self._matrix("token_embd.weight")
        return Checkpoint(
            name=self._path.stem,
            config=config,
            embedding=embedding,
            layers=tuple(self._layer(number, config) for number in range(config.layers)),
            final_norm=self._vector("output_norm.weight"),
            head=self._matrix("output.weight") if "output.weight" in self._tensors else embedding,
            prediction=self._prediction(config),
        )

    def _field(self, key: str, default: Any = None) -> Any:
        field = self._reader.fields.get(key)
        if field is None:
            if default is None:
                raise CheckpointError(f"{self._path.name} has no {key!r}: it is not a whole model")
            return default
        return field.contents()

    def _config(self) -> Config:
        def number(key: str, default: Any = None) -> Any:
            value = self._field(f"{self._architecture}.{key}", default)
            if not isinstance(value, int | float):
                raise CheckpointError(f"{self._path.name}: {key} is {value!r}, where a number is due")
            return value

        hidden, heads = int(number("embedding_length")), int(number("attention.head_count"))
        head_size = int(number("attention.key_length", hidden // heads if heads else 0))
        return Config(
            architecture=self._architecture,
            # Multi-token-prediction layers are counted as blocks, after the model's own.
            layers=int(number("block_count")) - int(number("nextn_predict_layers", 0)),
            hidden=hidden,
            feed_forward=int(number("feed_forward_length")),
            heads=heads,
            key_value_heads=int(number("attention.head_count_kv", heads)),
            head_size=head_size,
            vocabulary=self._matrix("token_embd.weight").outputs,
            context=int(number("context_length")),
            norm_epsilon=float(number("attention.layer_norm_rms_epsilon")),
            inverse_frequencies=self._frequencies(head_size),
        )

    def _frequencies(self, head_size: int) -> tuple[float, ...]:
        prefix = f"{self._architecture}.rope"
        if self._field(f"{prefix}.dimension_count", head_size) != head_size:
            raise UnsupportedCheckpoint("rotary embedding of a part of the head is not supported")
        scaling: dict[str, Any] | None = None
        kind = self._field(f"{prefix}.scaling.type", "none")
        if kind != "none":
            scaling = {"rope_type": kind, "factor": self._field(f"{prefix}.scaling.factor", 1.0)}
        theta = float(self._field(f"{prefix}.freq_base", 10_000.0))
        frequencies = inverse_frequencies(head_size, theta, scaling)
        if "rope_freqs.weight" not in self._tensors:
            return frequencies
        factors = self._vector("rope_freqs.weight")  # Llama 3.1's rule, already worked out: a divisor a pair
        return tuple(
            frequency / float(factor) for frequency, factor in zip(frequencies, factors, strict=True)
        )

    def _prediction(self, config: Config) -> PredictionLayer | None:
        prefix = f"blk.{config.layers}.nextn"
        if f"{prefix}.eh_proj.weight" not in self._tensors:
            return None
        own_norm = f"{prefix}.shared_head_norm.weight"
        return PredictionLayer(
            fuse=self._matrix(f"{prefix}.eh_proj.weight"),
            embedding_norm=self._vector(f"{prefix}.enorm.weight"),
            hidden_norm=self._vector(f"{prefix}.hnorm.weight"),
            layer=self._layer(config.layers, config),
            final_norm=self._vector(own_norm if own_norm in self._tensors else "output_norm.weight"),
            hidden_first=False,
        )

    def _layer(self, number: int, config: Config) -> LayerWeights:
        prefix = f"blk.{number}"
        if f"{prefix}.attn_output.bias" in self._tensors or f"{prefix}.ffn_gate_inp.weight" in self._tensors:
            raise UnsupportedCheckpoint("attention output biases and mixtures of experts are not supported")
        query, key = self._matrix(f"{prefix}.attn_q.weight"), self._matrix(f"{prefix}.attn_k.weight")
        if self._architecture == "llama":
            query, key = _halves(query, config.heads), _halves(key, config.key_value_heads)
        return LayerWeights(
            attention_norm=self._vector(f"{prefix}.attn_norm.weight"),
            feed_forward_norm=self._vector(f"{prefix}.ffn_norm.weight"),
            query=query,
            key=key,
            value=self._matrix(f"{prefix}.attn_v.weight"),
            attention_output=self._matrix(f"{prefix}.attn_output.weight"),
            gate=self._matrix(f"{prefix}.ffn_gate.weight"),
            up=self._matrix(f"{prefix}.ffn_up.weight"),
            down=self._matrix(f"{prefix}.ffn_down.weight"),
            query_bias=self._optional(f"{prefix}.attn_q.bias"),
            key_bias=self._optional(f"{prefix}.attn_k.bias"),
            value_bias=self._optional(f"{prefix}.attn_v.bias"),
            query_norm=self._optional(f"{prefix}.attn_q_norm.weight"),
            key_norm=self._optional(f"{prefix}.attn_k_norm.weight"),
        )

    def _tensor(self, name: str) -> ReaderTensor:
        tensor = self._tensors.get(name)
        if tensor is None:
            raise CheckpointError(f"{self._path.name} has no tensor {name!r}: it is not a whole model")
        if tensor.data_offset + tensor.n_bytes > self._size:
            raise CheckpointError(f"{self._path.name} is cut short inside {name!r}; fetch it again")
        return tensor

    def _matrix(self, name: str) -> Weight:
        tensor = self._tensor(name)
        inputs, outputs = (int(size) for size in tensor.shape)
        data = np.asarray(tensor.data).view(np.uint8).reshape(outputs, -1)
        return Weight(tensor.tensor_type.name, outputs, inputs, data)

    def _vector(self, name: str) -> Vector:
        tensor = self._tensor(name)
        data = np.asarray(tensor.data).view(np.uint8).reshape(1, -1)
        return Weight(tensor.tensor_type.name, 1, int(tensor.shape[0]), data).dequantise().reshape(-1)

    def _optional(self, name: str) -> Vector | None:
        return self._vector(name) if name in self._tensors else None


def _halves(weight: Weight, heads: int) -> Weight:
    """Undoes the row order in which llama.cpp stores Llama's q and k.

    There a head's rows alternate between the two halves that rotate against each other (its kernel rotates
    neighbours); Hugging Face, and this project, keep the halves apart. Whole rows move, so no block changes.
    """
    width = weight.data.shape[1]
    paired = weight.data.reshape(heads, weight.outputs // heads // 2, 2, width)
    data = np.ascontiguousarray(paired.swapaxes(1, 2)).reshape(weight.outputs, width)
    return Weight(weight.format, weight.outputs, weight.inputs, data)
