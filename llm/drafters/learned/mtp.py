"""A checkpoint's own multi-token-prediction layer as a drafter's feature layer.

The first such layer is used again and again, each time on the state that it gave itself, which is how
engines draft several tokens with checkpoints that have only one.
"""

from __future__ import annotations

from pathlib import Path

import torch

from llm.checkpoints import Checkpoint, read_checkpoint
from llm.drafters.learned.compatibility import HeadsError
from llm.drafters.learned.feature_layer import Design, FeatureLayer


def load_mtp(path: Path) -> FeatureLayer:
    """The layer of a GGUF file (`nextn`) or of a folder in MiMo's or DeepSeek-V3's layout.

    Raises `HeadsError` where the checkpoint has none, `CheckpointError` where it cannot be read.
    """
    return prediction_layer(read_checkpoint(path))


def prediction_layer(checkpoint: Checkpoint) -> FeatureLayer:
    """Raises `HeadsError` where the checkpoint has none."""
    found = checkpoint.prediction
    if found is None:
        raise HeadsError(f"{checkpoint.name} has no multi-token-prediction layer")
    design = Design(
        hidden_first=found.hidden_first,
        input_norms=True,
        attention_norm=True,
        final_norm=True,
        attention_bias=found.layer.query_bias is not None,
        head_norms=found.layer.query_norm is not None,
    )
    made = FeatureLayer(checkpoint.config, design)
    made.take(found.layer)
    with torch.no_grad():
        made.fuse.weight.copy_(torch.from_numpy(found.fuse.dequantise()))
        for role in ("embedding_norm", "hidden_norm", "final_norm"):
            getattr(made, role).weight.copy_(torch.from_numpy(getattr(found, role).copy()))
    return made.eval()
