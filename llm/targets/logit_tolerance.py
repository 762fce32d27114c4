"""How far a row's logits move when its ids are read in other blocks: what the tie guard allows for."""

from __future__ import annotations

import numpy as np

from llm.targets.base import Target

SAMPLE = 32
SAFETY = 2.0


def measure_logit_tolerance(target: Target) -> float:
    """Twice the largest move of two logits against each other, a made-up text read alone and as one block."""
    ids = [(31 * i + 7) % target.vocabulary for i in range(min(SAMPLE, target.context))]
    block, alone = target.open(), target.open()
    together = block.extend(ids, len(ids))
    apart = np.concatenate([alone.extend([token], 1) for token in ids])
    block.close()
    alone.close()
    moves = together - apart
    return SAFETY * float((moves.max(axis=1) - moves.min(axis=1)).max())
