"""A target small enough to reason about, and a tokenizer of bytes: the stage's logic without weights."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from llm.targets.base import KeysAndValues, Logits
from llm.tokenizer import Tokenizer, Vocabulary

Rows = Callable[[Sequence[int]], npt.NDArray[np.float64]]
"""The logits after these ids: float64 [vocabulary]."""


class ToyCache:
    """Keeps ids only; a row is computed from the ids before it. Notes every block it was asked for."""

    def __init__(self, target: ToyTarget) -> None:
        self._target = target
        self.ids: list[int] = []
        self.blocks: list[tuple[int, int]] = []
        self.closed = False

    @property
    def length(self) -> int:
        return len(self.ids)

    @property
    def memory(self) -> int:
        return 8 * len(self.ids)

    def extend(self, ids: Sequence[int], rows: int) -> Logits:
        assert not self.closed
        assert ids
        assert 0 <= rows <= len(ids)
        assert len(self.ids) + len(ids) <= self._target.context, "past the context"
        assert all(0 <= i < self._target.vocabulary for i in ids), "an id outside the vocabulary"
        self.blocks.append((len(ids), rows))
        self._target.passes += rows > 0
        self.ids.extend(ids)
        ends = range(len(self.ids) - rows + 1, len(self.ids) + 1)
        logits = np.array([self._target.rows(self.ids[:end]) for end in ends], np.float32)
        return logits.reshape(rows, self._target.vocabulary)

    def truncate(self, length: int) -> None:
        assert 0 <= length <= len(self.ids)
        del self.ids[length:]

    def copy_out(self, length: int) -> KeysAndValues:
        assert 0 <= length <= len(self.ids)
        return np.array(self.ids[:length], "<i4").view(np.uint8).reshape(length, 4)

    def copy_in(self, read: KeysAndValues) -> None:
        assert not self.closed
        assert not self.ids
        self.ids = np.ascontiguousarray(read).view("<i4")[:, 0].tolist()

    def close(self) -> None:
        self.closed = True


@dataclass
class ToyTarget:
    """A target given by a function from ids to logits."""

    rows: Rows
    vocabulary: int
    context: int = 4096
    name: str = "toy"
    exact_rows: bool = True
    logit_tolerance: float = 0.0
    threads: int = 1
    position_bytes: int = 4
    arithmetic: str = "toy"
    passes: int = 0
    caches: list[ToyCache] = field(default_factory=list)

    def open(self) -> ToyCache:
        self.caches.append(ToyCache(self))
        return self.caches[-1]


def random_rows(vocabulary: int, *, seed: int = 0, sharpness: float = 3.0, memory: int = 2) -> Rows:
    """Logits that look random but depend on the last `memory` ids alone, so that text repeats itself."""

    @lru_cache(maxsize=4096)
    def after(*last: int) -> npt.NDArray[np.float64]:
        key = hash((seed, *last)) & 0x7FFFFFFF
        return np.random.default_rng(key).normal(0.0, sharpness, vocabulary)

    return lambda ids: after(*ids[-memory:]).copy()


def scripted_rows(script: Mapping[tuple[int, ...], int] | Sequence[int], vocabulary: int, start: int) -> Rows:
    """Logits that make greedy decoding write the script after `start` ids of prompt."""

    def rows(ids: Sequence[int]) -> npt.NDArray[np.float64]:
        logits = np.zeros(vocabulary)
        logits[script[min(len(ids) - start, len(script) - 1)]] = 10.0
        return logits

    return rows


END = 256
BEGIN = 257


def byte_tokenizer() -> Tokenizer:
    """One id a byte, then <|im_end|> and <|im_start|>."""
    from llm.tokenizer import _bytes_of_characters

    bpe = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": True,
            "use_regex": False,
        },
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        "model": {"type": "BPE", "vocab": _bytes_of_characters(), "merges": []},
    }
    return Tokenizer(
        Vocabulary(json.dumps(bpe), {"<|im_end|>": END, "<|im_start|>": BEGIN}, (END,), 258, None)
    )
