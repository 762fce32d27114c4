"""Networks on ONNX Runtime's CPU provider."""

from __future__ import annotations

from pathlib import Path

import onnxruntime


def session(path: Path, threads: int) -> onnxruntime.InferenceSession:
    """A session for an ONNX file, safe to run from several threads; each run uses `threads` of its own.

    Raises FileNotFoundError, and ValueError for a file that is damaged or no model.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no model at {path}: pull it with `rejoinder models pull`")
    onnxruntime.disable_telemetry_events()  # it may have been imported before us, without our switch
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its classes have no other base
        raise ValueError(
            f"{path} is cut short, damaged or no ONNX model ({error}): fetch it again, with "
            "`rejoinder models verify` and `rejoinder models pull` where it is one of ours"
        ) from error
