"""Running a convolutional decoder in windows: how long they are, and how much context makes them exact."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

Frames = npt.NDArray[np.float32]
"""Latent frames, float32[1, channels, frames]."""

WINDOWS = (16, 44, 88, 176)
"""Frames decoded at a time: few for an early first sound, then more, since context is computed twice."""
REACHES = (48, 192)
"""Frames on each side within which the reach of one frame is looked for, the likely answer first."""
STRONG, FELT = 10.0, 1e-7
"""A frame is changed by this many standard deviations; an output that moves by less does not depend on it."""
SEED = 0


def ramped(frames: int) -> Iterator[tuple[int, int]]:
    """Consecutive half-open ranges that cover `frames` frames, short ones first."""
    begin = turn = 0
    while begin < frames:
        end = min(begin + WINDOWS[min(turn, len(WINDOWS) - 1)], frames)
        yield begin, end
        begin, turn = end, turn + 1


def with_context(begin: int, end: int, context: int, frames: int) -> tuple[int, int]:
    """The range with `context` frames on each side, as far as there are any."""
    return max(0, begin - context), min(frames, end + context)


def reach(respond: Callable[[Frames], npt.NDArray[np.float32]], channels: int) -> int:
    """How many frames on each side an output depends on: the context that makes windows exact.

    It is found by trying, so it holds for any network: of two inputs that differ in their middle frame, the
    outputs differ as far as a frame reaches. Both have the same length and are computed in the same order,
    so beyond that they are equal. `respond` maps frames to an output whose last axis is a multiple of them.
    Raises ValueError for a network in which a frame reaches further than anything that works in windows.
    """
    noise = np.random.default_rng(SEED)
    for half in REACHES:
        frames = noise.standard_normal((1, channels, 2 * half + 1), dtype=np.float32)
        changed = frames.copy()
        changed[:, :, half] += STRONG * noise.standard_normal(channels, dtype=np.float32)
        difference = np.abs(respond(changed) - respond(frames))
        by_frame = difference.reshape(-1, 2 * half + 1, difference.shape[-1] // (2 * half + 1)).max((0, 2))
        touched = np.flatnonzero(by_frame > FELT)
        furthest = int(np.abs(touched - half).max(initial=0))
        if furthest < half:
            return furthest
    raise ValueError(f"a frame changes the output more than {REACHES[-1]} frames away")
