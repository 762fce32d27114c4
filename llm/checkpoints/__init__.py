"""Checkpoints: one description of a model's weights, whatever file they came in."""

from llm.checkpoints.description import (
    Checkpoint,
    CheckpointError,
    Config,
    LayerWeights,
    PredictionLayer,
    UnsupportedCheckpoint,
    Weight,
)
from llm.checkpoints.reading import fingerprint, read_checkpoint

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "Config",
    "LayerWeights",
    "PredictionLayer",
    "UnsupportedCheckpoint",
    "Weight",
    "fingerprint",
    "read_checkpoint",
]
