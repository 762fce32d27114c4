"""One decoder layer over pairs of a hidden state and the token after it: what EAGLE and MTP have in common.

EAGLE's head (Li et al., 2401.15077) and the multi-token-prediction layers that some checkpoints bring along
(DeepSeek-V3, 2412.19437; MiMo, 2505.07608) both fuse the embedding of the newest token with the target's
hidden state of the position before it, run one decoder layer over the pairs, and give the next hidden state,
which the target's own head turns into logits and which takes the real one's place in the next pair. They
differ in which of the two comes first and in where they normalise.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention, silu

from llm.checkpoints import Config, LayerWeights, Weight
from llm.checkpoints.description import MATRICES, VECTORS
from llm.targets.rotary import rotate


@dataclass(frozen=True, slots=True)
class Design:
    """What tells one such layer from another; the parts that are absent pass their input on."""

    hidden_first: bool = False
    """The fused vector is [hidden state, embedding], not the other way round."""
    input_norms: bool = False
    """Embedding and hidden state are each normalised before they are fused."""
    attention_norm: bool = False
    final_norm: bool = False
    fuse_bias: bool = False
    attention_bias: bool = False
    head_norms: bool = False


EAGLE = Design()


class LayerCache:
    """The keys and values [key-value heads, n, head_size] of the pairs that a layer has seen in a call."""

    def __init__(self) -> None:
        self.keys: torch.Tensor | None = None
        self.values: torch.Tensor | None = None

    def __len__(self) -> int:
        return 0 if self.keys is None else self.keys.shape[1]

    def cut(self, first: int, end: int) -> None:
        """Keep the pairs `first` to `end`."""
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self.keys[:, first:end], self.values[:, first:end]

    def add(self, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Append; returns all of them."""
        if self.keys is not None and self.values is not None:
            keys = torch.cat([self.keys, keys], dim=1)
            values = torch.cat([self.values, values], dim=1)
        self.keys, self.values = keys, values
        return keys, values


class FeatureLayer(nn.Module):
    """The layer's weights. Sizes and rotation are those of `config`."""

    def __init__(self, config: Config, design: Design = EAGLE) -> None:
        super().__init__()
        self.config, self.design = config, design
        hidden, epsilon = config.hidden, config.norm_epsilon
        queries, keys = config.heads * config.head_size, config.key_value_heads * config.head_size

        def norm(present: bool, size: int = hidden) -> nn.Module:
            return nn.RMSNorm(size, epsilon) if present else nn.Identity()

        self.embedding_norm, self.hidden_norm = norm(design.input_norms), norm(design.input_norms)
        self.fuse = nn.Linear(2 * hidden, hidden, bias=design.fuse_bias)
        self.attention_norm = norm(design.attention_norm)
        self.query = nn.Linear(hidden, queries, bias=design.attention_bias)
        self.key = nn.Linear(hidden, keys, bias=design.attention_bias)
        self.value = nn.Linear(hidden, keys, bias=design.attention_bias)
        self.query_norm = norm(design.head_norms, config.head_size)
        self.key_norm = norm(design.head_norms, config.head_size)
        self.attention_output = nn.Linear(queries, hidden, bias=False)
        self.feed_forward_norm = norm(True)
        self.gate = nn.Linear(hidden, config.feed_forward, bias=False)
        self.up = nn.Linear(hidden, config.feed_forward, bias=False)
        self.down = nn.Linear(config.feed_forward, hidden, bias=False)
        self.final_norm = norm(design.final_norm)
        self._frequencies = torch.tensor(config.inverse_frequencies, dtype=torch.float64)

    def forward(
        self, states: torch.Tensor, embeddings: torch.Tensor, position: int, cache: LayerCache
    ) -> torch.Tensor:
        """Hidden states [n, hidden] of the positions from `position` on and the embeddings [n, hidden] of the
        tokens after them, following what is in `cache`: the states [n, hidden] one position on.
        """
        embedded, seen = self.embedding_norm(embeddings), self.hidden_norm(states)
        parts = [seen, embedded] if self.design.hidden_first else [embedded, seen]
        x = self.fuse(torch.cat(parts, dim=-1))
        x = x + self._attend(self.attention_norm(x), position, cache)
        y = self.feed_forward_norm(x)
        x = x + self.down(silu(self.gate(y)) * self.up(y))
        last: torch.Tensor = self.final_norm(x)
        return last

    def take(self, weights: LayerWeights) -> None:
        """Copy a decoder layer's weights; norms and biases that this design lacks are left out."""
        with torch.no_grad():
            for role in (*MATRICES, *VECTORS):
                source = getattr(weights, role)
                owner, part = (role[:-5], "bias") if role.endswith("_bias") else (role, "weight")
                place = getattr(getattr(self, owner), part, None)
                if place is not None and source is not None:
                    values = source.dequantise() if isinstance(source, Weight) else source
                    place.copy_(torch.from_numpy(values.copy()))

    def _attend(self, x: torch.Tensor, position: int, cache: LayerCache) -> torch.Tensor:
        n, size = len(x), self.config.head_size
        places = torch.arange(position, position + n, dtype=torch.float64)
        angles = places[:, None] * self._frequencies
        cosines, sines = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        query = rotate(self.query_norm(self.query(x).view(n, -1, size)), cosines, sines)
        key = rotate(self.key_norm(self.key(x).view(n, -1, size)), cosines, sines)
        value = self.value(x).view(n, -1, size)
        keys, values = cache.add(key.transpose(0, 1), value.transpose(0, 1))
        visible = torch.ones(n, keys.shape[1], dtype=torch.bool).tril(keys.shape[1] - n)
        attended = scaled_dot_product_attention(
            query.transpose(0, 1)[None], keys[None], values[None], visible, enable_gqa=True
        )
        flat: torch.Tensor = self.attention_output(attended[0].transpose(0, 1).reshape(n, -1))
        return flat
