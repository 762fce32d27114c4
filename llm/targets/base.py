"""What every target is: shared weights, and a key-value cache for each call that can be rolled back.

A *target* is the model that has the last word on every token. A *pass* is one run of it over the next ids.
Rolling back a draft is `Cache.truncate`: the position moves, nothing is copied or cleared, and the next
`extend` overwrites what lay behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Logits = npt.NDArray[np.float32]
"""float32 [rows, vocabulary], C-contiguous, owned by the caller: later passes never write to it."""


Hidden = npt.NDArray[np.float32]
"""float32 [rows, hidden], the last layer's output after the final norm: what the target's head multiplies."""


KeysAndValues = npt.NDArray[np.uint8]
"""uint8 [positions, bytes of one], C-contiguous: what a cache holds of its first positions, in an order of
the target's own."""


class NonFiniteLogits(ArithmeticError):
    """A pass gave a logit that is NaN or infinite: the weights or the arithmetic are broken.

    The pass's ids were not kept: the cache's length is what it was before the call.
    """


class ContextFull(ValueError):
    """The ids do not fit: `length + len(ids)` would exceed the target's context. Nothing was kept."""


@runtime_checkable
class Cache(Protocol):
    """One call's key-value cache: static storage and a position. Used by one thread at a time.

    Caches of one target may be used side by side from different threads.
    """

    @property
    def length(self) -> int:
        """How many positions are filled, 0 to `Target.context`."""
        ...

    @property
    def memory(self) -> int:
        """Bytes this cache holds now."""
        ...

    def extend(self, ids: Sequence[int], rows: int) -> Logits:
        """Append `ids` at `length` and return the logits of the last `rows` of them.

        Row `i` of the result is the distribution over the token that follows `ids[len(ids) - rows + i]`.
        `rows` is 0 to `len(ids)`; 0 is a pure prefill and gives an array of shape [0, vocabulary]. Any
        number of ids is accepted and read efficiently in chunks; a caller who wants to cancel splits.
        Where `Target.exact_rows` holds, a row's bits depend on the ids up to it alone: not on how they
        were split into calls, on `rows`, on the thread count, or on what was truncated in between.

        Raises `ValueError` for an id outside the vocabulary, no ids, or `rows` out of range,
        `ContextFull` when the ids do not fit, and `NonFiniteLogits`; in each case nothing was appended.
        """
        ...

    def truncate(self, length: int) -> None:
        """Go back to the absolute `length`, 0 to the present one. Costs nothing.

        Raises `ValueError` for any other length.
        """
        ...

    def close(self) -> None:
        """Free the storage. May be called twice; any later `extend` raises `ValueError`."""
        ...


@runtime_checkable
class Target(Protocol):
    """A model's weights, shared by all calls; `open` starts a call's cache."""

    @property
    def name(self) -> str:
        """The checkpoint's name and what runs it, for logs."""
        ...

    @property
    def vocabulary(self) -> int:
        """Width of a row of logits. May exceed the tokenizer's vocabulary (rows padded by the publisher)."""
        ...

    @property
    def context(self) -> int:
        """Positions a cache can hold."""
        ...

    @property
    def exact_rows(self) -> bool:
        """Whether a row has the same bits in every block: alone, in a draft, in a prefill chunk.

        Where it does not, a near tie can fall either way, and verification has to guard it: a row whose
        two best choices lie within `logit_tolerance` of each other is decided by a pass of that row alone.
        """
        ...

    @property
    def logit_tolerance(self) -> float:
        """How far two logits of a row can move against each other between blocks (0.0 if `exact_rows`)."""
        ...

    @property
    def threads(self) -> int:
        """Threads that the next pass uses."""
        ...

    @threads.setter
    def threads(self, count: int) -> None: ...

    def open(self) -> Cache:
        """A new, empty cache. Its storage grows with the call."""
        ...


@runtime_checkable
class CopyableCache(Cache, Protocol):
    """A cache whose beginning can be copied into another of the same target."""

    def copy_out(self, length: int) -> KeysAndValues:
        """The first `length` positions: an array that nothing writes to later.

        Raises `ValueError` for more positions than there are.
        """
        ...

    def copy_in(self, read: KeysAndValues) -> None:
        """Begin with positions, or the first of them, that `copy_out` gave: as if this cache had read their
        ids itself. Rows after them have the bits that they have in the cache copied from.

        Raises `ValueError` where the cache is not empty or closed, or the positions are not of this target.
        """
        ...


@runtime_checkable
class CopyableTarget(Target, Protocol):
    """A target whose caches are `CopyableCache`s."""

    @property
    def position_bytes(self) -> int:
        """Bytes of one position that `copy_out` gives; 0 where this model's caches cannot be copied."""
        ...

    @property
    def arithmetic(self) -> str:
        """What the bits of keys and values depend on besides weights and ids, such as the instruction set.

        Empty where that cannot be said for another process; they are then never kept on disk.
        """
        ...


@runtime_checkable
class HiddenCache(Cache, Protocol):
    """A cache that also hands out hidden states, for drafters that are trained on them."""

    def keep_hidden(self, most: int) -> None:
        """From the next `extend` on, keep the hidden states of up to `most` of its last ids; 0: of none.

        A new cache keeps none, and then they cost nothing.
        """
        ...

    def hidden(self, rows: int) -> Hidden:
        """The hidden states of the last `rows` ids of the last `extend`: float32 [rows, hidden].

        Where `Target.exact_rows` holds, it holds for them too. Raises `ValueError` for more rows than were
        kept.
        """
        ...

    def project(self, states: Hidden) -> Logits:
        """Take hidden states to the target's head: float32 [rows, vocabulary], for at most 64 rows.

        Changes nothing in the cache. Where `Target.exact_rows` holds, a row of `hidden` gives the very logits
        that `extend` returned. Raises `NonFiniteLogits`.
        """
        ...


@runtime_checkable
class HiddenTarget(Target, Protocol):
    """A target whose caches are `HiddenCache`s, and which shows its embedding."""

    @property
    def hidden_size(self) -> int:
        """Numbers in a hidden state and in an embedding."""
        ...

    def embed(self, ids: Sequence[int]) -> Hidden:
        """The embeddings of ids: float32 [len(ids), hidden]."""
        ...


@runtime_checkable
class PeekingCache(Cache, Protocol):
    """A cache that can run the model's first layers alone over ids that it does not append."""

    def peek(self, ids: Sequence[int], ahead: int, layers: int) -> Logits:
        """The head's logits after the first `layers`, at the last of `ids`: float32 [1, vocabulary].

        The ids follow `ahead` positions after `length`, up to where earlier peeks have got since the last
        `extend` or `truncate`. What they leave in the cache's storage is what `extend` would write there, and
        writes again. Raises `ValueError`, `ContextFull` or `NonFiniteLogits`.
        """
        ...


@runtime_checkable
class PeekingTarget(Target, Protocol):
    """A target whose caches are `PeekingCache`s."""

    @property
    def layers(self) -> int:
        """How many layers a pass runs."""
        ...
