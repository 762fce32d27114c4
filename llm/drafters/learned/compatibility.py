"""Whether a learned drafter fits the model that it is to draft for."""

from __future__ import annotations

from llm.targets.base import HiddenTarget, Target


class HeadsError(ValueError):
    """Heads that cannot be read, or that do not fit the target. The message says what is wrong."""


def with_hidden_states(target: Target) -> HiddenTarget:
    """The target, if it hands out hidden states. Raises `HeadsError`."""
    if not isinstance(target, HiddenTarget):
        raise HeadsError(f"{target.name} does not hand out hidden states, which heads need")
    return target


def check_hidden_size(target: Target, size: int) -> HiddenTarget:
    """The target, if its hidden states are `size` numbers. Raises `HeadsError`."""
    source = with_hidden_states(target)
    if source.hidden_size != size:
        raise HeadsError(
            f"the heads see {size} numbers, {target.name}'s hidden state has {source.hidden_size}"
        )
    return source
