"""What a decoder checkpoint holds: its configuration, and its tensors by role, still quantised.

The family covered is the pre-norm decoder with RMSNorm, rotary position embedding, grouped-query attention
and a SwiGLU feed-forward layer: Llama (arXiv 2302.13971), Qwen2 (2407.10671: biases on q, k, v) and Qwen3
(2505.09388: an RMSNorm on each head's q and k).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

WEIGHT_FORMATS = ("Q4_0", "Q4_1", "Q5_0", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "F16", "BF16", "F32")
"""Block formats of llama.cpp's `ggml-common.h` that a weight may be stored in, under GGUF's names."""


class CheckpointError(ValueError):
    """The checkpoint cannot be read: missing, cut short, or inconsistent. The message says what to do."""


class UnsupportedCheckpoint(CheckpointError):
    """The checkpoint is sound, but of an architecture or format outside this family."""


@dataclass(frozen=True, slots=True)
class Config:
    """The numbers of the architecture, under Hugging Face's meanings.

    `inverse_frequencies`: one for each pair of a head's dimensions: the angle of position `p` in pair `i` is
    `p * inverse_frequencies[i]`, any long-context scaling included.
    """

    architecture: str
    layers: int
    hidden: int
    feed_forward: int
    heads: int
    key_value_heads: int
    head_size: int
    vocabulary: int
    context: int
    norm_epsilon: float
    inverse_frequencies: tuple[float, ...]

    def __post_init__(self) -> None:
        sizes = (
            self.layers,
            self.hidden,
            self.feed_forward,
            self.heads,
            self.key_value_heads,
            self.head_size,
        )
        if min(*sizes, self.vocabulary, self.context) < 1:
            raise CheckpointError(f"a size in the checkpoint's configuration is not positive: {self}")
        if self.heads % self.key_value_heads:
            raise CheckpointError(
                f"{self.heads} query heads cannot share {self.key_value_heads} key-value heads evenly"
            )
        if len(self.inverse_frequencies) * 2 != self.head_size:
            raise UnsupportedCheckpoint("rotary embedding of a part of the head is not supported")

    def as_dict(self) -> dict[str, Any]:
        """For JSON; `Config(**values)` reads it back (JSON's list becomes a tuple first)."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Weight:
    """A matrix in its file's own blocks. `data`: uint8 [outputs, bytes a row], usually memory-mapped."""

    format: str
    outputs: int
    inputs: int
    data: npt.NDArray[np.uint8]

    def __post_init__(self) -> None:
        if self.format not in WEIGHT_FORMATS:
            supported = ", ".join(WEIGHT_FORMATS)
            raise UnsupportedCheckpoint(f"weights in {self.format} are not supported; supported: {supported}")
        block_inputs, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType[self.format]]
        if self.inputs % block_inputs:
            raise CheckpointError(
                f"{self.inputs} inputs are not a multiple of {self.format}'s {block_inputs}"
            )
        expected = (self.outputs, self.inputs // block_inputs * block_bytes)
        if self.data.shape != expected or self.data.dtype != np.uint8:
            raise CheckpointError(f"{self.format} weight: data is {self.data.shape}, expected {expected}")

    def rows(self, indices: npt.NDArray[np.int64] | slice) -> npt.NDArray[np.float32]:
        """Some rows dequantised: float32 [n, inputs]."""
        chosen = np.ascontiguousarray(self.data[indices])
        if self.format == "BF16":
            widened: npt.NDArray[np.float32] = (chosen.view(np.uint16).astype(np.uint32) << 16).view(
                np.float32
            )
            return widened
        if self.format in ("F16", "F32"):
            return chosen.view(np.float16 if self.format == "F16" else np.float32).astype(np.float32)
        exact: npt.NDArray[np.float32] = dequantize(chosen, GGMLQuantizationType[self.format])
        return exact.astype(np.float32, copy=False)

    def dequantise(self) -> npt.NDArray[np.float32]:
        """The whole matrix: float32 [outputs, inputs]."""
        return self.rows(slice(None))


Vector = npt.NDArray[np.float32]

MATRICES = ("query", "key", "value", "attention_output", "gate", "up", "down")
VECTORS = (
    "attention_norm",
    "feed_forward_norm",
    "query_bias",
    "key_bias",
    "value_bias",
    "query_norm",
    "key_norm",
)


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One decoder layer. Query and key rows are in Hugging Face's order: a head's two halves rotate."""

    attention_norm: Vector
    feed_forward_norm: Vector
    query: Weight
    key: Weight
    value: Weight
    attention_output: Weight
    gate: Weight
    up: Weight
    down: Weight
    query_bias: Vector | None = None
    key_bias: Vector | None = None
    value_bias: Vector | None = None
    query_norm: Vector | None = None
    key_norm: Vector | None = None


@dataclass(frozen=True, slots=True)
class PredictionLayer:
    """A multi-token-prediction layer: it guesses the token after the next.

    `fuse` [hidden, 2 hidden] joins the next token's embedding and the position's hidden state, each under its
    own norm; `hidden_first` says in which order. `final_norm` comes before the model's own head.
    """

    fuse: Weight
    embedding_norm: Vector
    hidden_norm: Vector
    layer: LayerWeights
    final_norm: Vector
    hidden_first: bool


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A whole model. `head` is the embedding itself where the checkpoint ties them.

    `prediction`: the first of its multi-token-prediction layers, where it has any that this family covers.
    """

    name: str
    config: Config
    embedding: Weight
    layers: tuple[LayerWeights, ...]
    final_norm: Vector
    head: Weight
    prediction: PredictionLayer | None = None

    def __post_init__(self) -> None:
        for name, have, expected in self._shapes():
            if have != expected:
                raise CheckpointError(
                    f"{self.name}: {name} has shape {have}, its configuration says {expected}"
                )

    def _shapes(self) -> Iterator[tuple[str, tuple[int, ...], tuple[int, ...]]]:
        c = self.config
        table = (c.vocabulary, c.hidden)
        yield "embedding", (self.embedding.outputs, self.embedding.inputs), table
        yield "head", (self.head.outputs, self.head.inputs), table
        yield "final_norm", self.final_norm.shape, (c.hidden,)
        yield "layers", (len(self.layers),), (c.layers,)
        for number, layer in enumerate(self.layers):
            yield from _layer_shapes(f"layer {number}", layer, c)
        if self.prediction is not None:
            fuse = self.prediction.fuse
            yield "the prediction layer's fuse", (fuse.outputs, fuse.inputs), (c.hidden, 2 * c.hidden)
            for role in ("embedding_norm", "hidden_norm", "final_norm"):
                yield f"the prediction layer's {role}", getattr(self.prediction, role).shape, (c.hidden,)
            yield from _layer_shapes("the prediction layer", self.prediction.layer, c)


def _layer_shapes(
    name: str, layer: LayerWeights, c: Config
) -> Iterator[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """Each part's name, shape and the shape that the configuration says."""
    queries, keys = c.heads * c.head_size, c.key_value_heads * c.head_size
    matrices = {
        "query": (queries, c.hidden),
        "key": (keys, c.hidden),
        "value": (keys, c.hidden),
        "attention_output": (c.hidden, queries),
        "gate": (c.feed_forward, c.hidden),
        "up": (c.feed_forward, c.hidden),
        "down": (c.hidden, c.feed_forward),
    }
    vectors = {
        "attention_norm": c.hidden,
        "feed_forward_norm": c.hidden,
        "query_bias": queries,
        "key_bias": keys,
        "value_bias": keys,
        "query_norm": c.head_size,
        "key_norm": c.head_size,
    }
    for role, shape in matrices.items():
        weight: Weight = getattr(layer, role)
        yield f"{name}'s {role}", (weight.outputs, weight.inputs), shape
    for role, size in vectors.items():
        vector: Vector | None = getattr(layer, role)
        if vector is not None:
            yield f"{name}'s {role}", vector.shape, (size,)
