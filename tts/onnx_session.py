"""Networks on ONNX Runtime's CPU provider."""

from __future__ import annotations

import onnxruntime


def session(model: bytes, threads: int) -> onnxruntime.InferenceSession:
    """A session for `model`, safe to run from several threads; each run uses `threads` of its own.

    Raises ValueError where the bytes are no ONNX model.
    """
    onnxruntime.disable_telemetry_events()  # it may have been imported before us, without our switch
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its classes have no other base
        raise ValueError(f"the voice's model is cut short or damaged ({error})") from error
