"""What one pass costs at each width, alternating call by call with llama.cpp on the same file.

    python -m bench.llm_passes [--model small] [--threads 2] [--json]

Without llama.cpp (see `bench.llm_cpp`) only our own figures are measured.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bench.llm_cpp import llama_cpp_or_none
from llm.targets.base import Target
from llm.targets.load import load_target
from pipeline.models.catalogue import path

WIDTHS = (1, 2, 4, 5, 8)
PREFILL = 64
POSITION = 200
"""Tokens of context that each pass finds."""

MODELS = {"default": "qwen2.5-coder-1.5b", "small": "qwen2.5-coder-0.5b", "smallest": "smollm2-135m"}


class Contestant(Protocol):
    """Something whose passes are timed."""

    def read(self, ids: Sequence[int], position: int, rows: int) -> float:
        """Reads `ids` at a position and has the logits of the last `rows`; the seconds that took."""
        ...


class Ours:
    """A target of this project."""

    def __init__(self, target: Target) -> None:
        self._cache = target.open()

    def read(self, ids: Sequence[int], position: int, rows: int) -> float:
        self._cache.truncate(position)
        before = time.perf_counter()
        self._cache.extend(ids, rows)
        return time.perf_counter() - before


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
                times[name].append(contestant.read(ids, POSITION, rows))
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
