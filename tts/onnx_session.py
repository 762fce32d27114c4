"""Networks on ONNX Runtime's CPU provider."""

from __future__ import annotations

import onnxruntime


def session(model: bytes, threads: int) -> onnxruntime.InferenceSession:
    """A session for `model`, safe to run from several threads; each run uses `threads` of its own."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
