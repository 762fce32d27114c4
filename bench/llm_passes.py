"""What one pass costs at each width, alternating call by call with llama.cpp on the same file.

    python -m bench.llm_passes [--model small] [--threads 2] [--json]

llama.cpp is `llama-cpp-python`, an extra of this benchmark; without it only our own figures are measured.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from llm.targets.base import Target
from llm.targets.load import load_target
from pipeline.catalogue import path

WIDTHS = (1, 2, 4, 5, 8)
PREFILL = 64
POSITION = 200
"""Tokens of context that each pass finds."""

MODELS = {"default": "qwen2.5-coder-1.5b", "small": "qwen2.5-coder-0.5b", "smallest": "smollm2-135m"}


class Contestant(Protocol):
    """Something whose passes are timed: reads `ids` at a position and has the logits of the last `rows`."""

    def read(self, ids: Sequence[int], position: int, rows: int) -> None: ...


class Ours:
    """A target of this project."""

    def __init__(self, target: Target) -> None:
        self._cache = target.open()

    def read(self, ids: Sequence[int], position: int, rows: int) -> None:
        self._cache.truncate(position)
        self._cache.extend(ids, rows)


class LlamaCpp:
    """llama.cpp through the C interface that llama-cpp-python wraps, so that no Python is in its way."""

    def __init__(self, model: Path, threads: int, context: int) -> None:
        """Raises `ImportError` where llama-cpp-python is not installed."""
        import llama_cpp

        self._llama = llama_cpp
        self._silence = llama_cpp.llama_log_callback(lambda *_: None)
        llama_cpp.llama_log_set(self._silence, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        self._model = llama_cpp.llama_model_load_from_file(
            str(model).encode(), llama_cpp.llama_model_default_params()
        )
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx = settings.n_batch = settings.n_ubatch = context
        settings.n_threads = settings.n_threads_batch = threads
        self._context = llama_cpp.llama_init_from_model(self._model, settings)
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._batch = llama_cpp.llama_batch_init(context, 0, 1)

    def read(self, ids: Sequence[int], position: int, rows: int) -> None:
        self._llama.llama_memory_seq_rm(self._memory, 0, position, -1)
        batch = self._batch
        batch.n_tokens = len(ids)
        for index, token in enumerate(ids):
            batch.token[index], batch.pos[index] = token, position + index
            batch.n_seq_id[index], batch.seq_id[index][0] = 1, 0
            batch.logits[index] = index >= len(ids) - rows
        if self._llama.llama_decode(self._context, batch) != 0:
            raise RuntimeError("llama.cpp refused the batch")
        self._llama.llama_get_logits(self._context)  # waits for the result

    def close(self) -> None:
        self._llama.llama_batch_free(self._batch)
        self._llama.llama_free(self._context)
        self._llama.llama_model_free(self._model)


def llama_cpp_or_none(model: Path, threads: int, context: int) -> LlamaCpp | None:
    """llama.cpp on a file, or None with a line that says how to get it."""
    try:
        return LlamaCpp(model, threads, context)
    except ImportError:
        print("llama.cpp is left out: pip install llama-cpp-python")
        return None


def measure(
    contestants: dict[str, Contestant], vocabulary: int, repeats: int = 15
) -> dict[str, dict[str, float]]:
    """Median milliseconds of a pass by contestant and width, and tokens/s of a prefill, taking turns."""
    random = np.random.default_rng(0)
    opening = random.integers(0, vocabulary, POSITION).tolist()
    for contestant in contestants.values():
        contestant.read(opening, 0, 0)
    result: dict[str, dict[str, float]] = {name: {} for name in contestants}
    for width in (*WIDTHS, PREFILL):
        rows = 1 if width == PREFILL else width
        times: dict[str, list[float]] = {name: [] for name in contestants}
        for _ in range(repeats + 1):
            ids = random.integers(0, vocabulary, width).tolist()
            for name, contestant in contestants.items():
                times[name].append(_seconds(contestant, ids, rows))
        for name, values in times.items():
            median = statistics.median(values[1:])  # the first warms up
            if width == PREFILL:
                result[name]["prefill_tokens_per_second"] = PREFILL / median
            else:
                result[name][f"pass{width}_ms"] = 1000 * median
    return result


def bench_passes(model: Path, *, threads: int = 2, repeats: int = 15) -> dict[str, Any]:
    """The table of one model; with llama.cpp there are also the ratios that the project is held to."""
    context = 1024
    target = load_target(model, threads=threads, context=context)
    contestants: dict[str, Contestant] = {"rejoinder": Ours(target)}
    peer = llama_cpp_or_none(model, threads, context)
    if peer:
        contestants["llama.cpp"] = peer
    result: dict[str, Any] = {"model": target.name, "threads": threads}
    result |= measure(contestants, target.vocabulary, repeats)
    if peer:
        peer.close()
        ours, theirs = result["rejoinder"], result["llama.cpp"]
        result["pass1_over_llama_cpp_pass1"] = ours["pass1_ms"] / theirs["pass1_ms"]
        result["pass5_over_llama_cpp_pass1"] = ours["pass5_ms"] / theirs["pass1_ms"]
        result["pass8_over_llama_cpp_pass1"] = ours["pass8_ms"] / theirs["pass1_ms"]
        result["prefill_over_llama_cpp"] = (
            ours["prefill_tokens_per_second"] / theirs["prefill_tokens_per_second"]
        )
    return result


def _seconds(contestant: Contestant, ids: Sequence[int], rows: int) -> float:
    start = time.perf_counter()
    contestant.read(ids, POSITION, rows)
    return time.perf_counter() - start


def _print_table(result: dict[str, Any]) -> None:
    print(f"{result['model']}, {result['threads']} threads, {POSITION} tokens of context")
    for name in ("rejoinder", "llama.cpp"):
        if name in result:
            figures = "  ".join(f"{key} {value:7.1f}" for key, value in result[name].items())
            print(f"  {name:10} {figures}")
    for key, value in result.items():
        if "_over_" in key:
            print(f"  {key} {value:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model", choices=MODELS, default="default")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result = bench_passes(path(MODELS[options.model]), threads=options.threads, repeats=options.repeats)
    print(json.dumps(result)) if options.json else _print_table(result)


if __name__ == "__main__":
    main()
