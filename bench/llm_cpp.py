"""llama.cpp as a contestant, in a process of its own, so that where it crashes our figures go on.

It comes with `llama-cpp-python` (`pip install 'rejoinder[bench]'`) and is driven through the C interface that
package wraps, in the same process as the library, so that no Python and no pipe is in its way: the seconds
are taken there. This file is both ends of the pipe: imported, the client; run, the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

BUILD = (
    'CMAKE_ARGS="-DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_AVX512=ON -DGGML_AVX512_VNNI=ON" '
    "pip install --force-reinstall --no-cache-dir --no-deps llama-cpp-python"
)
"""For a processor with AVX-512 VNNI and AMX: the build for the machine's own processor, which is the default,
is known to crash in its AMX code when GCC 12 compiles it."""


LOOKED_UP_TOKENS = 2
"""Guessed at a time: what the documentation of llama-cpp-python advises where there is no GPU."""


class LlamaCppFailed(RuntimeError):
    """llama.cpp's process died or refused; the message says how to build one that may work."""


class LlamaCpp:
    """A model read by llama.cpp, and one sequence in its key-value cache."""

    def __init__(self, model: Path, threads: int, context: int) -> None:
        """Raises `ImportError` where llama-cpp-python is not installed, and `LlamaCppFailed`."""
        if find_spec("llama_cpp") is None:
            raise ImportError("llama-cpp-python is not installed", name="llama-cpp-python")
        # -P: the folder of this file is no place to import from.
        command = [sys.executable, "-P", __file__, str(model), str(threads), str(context)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._receive()

    def read(self, ids: Sequence[int], position: int, rows: int) -> float:
        """One pass over `ids` at a position, with the logits of the last `rows`; the seconds it took."""
        seconds: float = self._ask("read", list(ids), position, rows)
        return seconds

    def write(
        self, ids: Sequence[int], position: int, most: int, ends: Collection[int]
    ) -> list[tuple[int, float]]:
        """Read `ids` and go on greedily up to an end: each token, and the seconds until it was there."""
        written = self._ask("write", list(ids), position, most, sorted(ends))
        return [(token, seconds) for token, seconds in written]

    def write_looking_up(
        self, prompt: Sequence[int], kept: int, most: int, ends: Collection[int]
    ) -> list[tuple[int, float]]:
        """The same with the prompt lookup that comes with llama-cpp-python. `kept`: how many
        tokens of the whole prompt are in the cache."""
        written = self._ask("write_looking_up", list(prompt), kept, most, sorted(ends))
        return [(token, seconds) for token, seconds in written]

    def close(self) -> None:
        """End the process. May be called twice."""
        self._process.communicate()

    def _ask(self, *request: Any) -> Any:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # what it died of is told where its answer is missing
            print(json.dumps(request), file=self._process.stdin, flush=True)
        return self._receive()

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line:
            return json.loads(line)
        raise LlamaCppFailed(f"llama.cpp crashed: {_ending(self._process.wait())}; build it with {BUILD}")


def llama_cpp_or_none(model: Path, threads: int, context: int) -> LlamaCpp | None:
    """llama.cpp on a file, or None with a line on stderr that says what to do about it."""
    try:
        return LlamaCpp(model, threads, context)
    except ImportError:
        print("llama.cpp is left out: pip install 'rejoinder[bench]'", file=sys.stderr)
    except LlamaCppFailed as failed:
        print(f"llama.cpp is left out. {failed}", file=sys.stderr)
    return None


def _ending(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit status {code}"


class _Engine:
    """The library itself, in its own process."""

    def __init__(self, model: str, threads: int, context: int) -> None:
        import llama_cpp

        self._llama = llama_cpp
        self._silence = llama_cpp.llama_log_callback(lambda *_: None)
        llama_cpp.llama_log_set(self._silence, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        loaded = llama_cpp.llama_model_load_from_file(model.encode(), llama_cpp.llama_model_default_params())
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx = settings.n_batch = settings.n_ubatch = context
        settings.n_threads = settings.n_threads_batch = threads
        self._context = llama_cpp.llama_init_from_model(loaded, settings)
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._batch = llama_cpp.llama_batch_init(context, 0, 1)
        self._vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(loaded))

    def read(self, ids: list[int], position: int, rows: int) -> float:
        before = time.perf_counter()
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
        return time.perf_counter() - before

    def write(self, ids: list[int], position: int, most: int, ends: list[int]) -> list[tuple[int, float]]:
        before = time.perf_counter()
        written: list[tuple[int, float]] = []
        while len(written) < most:
            self.read(ids, position, 1)
            position += len(ids)
            token = self._choice(-1)
            written.append((token, time.perf_counter() - before))
            if token in ends:
                break
            ids = [token]
        return written

    def write_looking_up(
        self, prompt: list[int], kept: int, most: int, ends: list[int]
    ) -> list[tuple[int, float]]:
        import numpy as np
        from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

        before = time.perf_counter()
        look_up = LlamaPromptLookupDecoding(num_pred_tokens=LOOKED_UP_TOKENS)
        known, written = list(prompt), list[tuple[int, float]]()
        guessed: list[int] = []
        while True:
            ids = [*known[kept:], *guessed]
            self.read(ids, kept, 1 + len(guessed))
            choices = [self._choice(len(ids) - 1 - back) for back in range(len(guessed), -1, -1)]
            now = time.perf_counter() - before
            kept = len(known)
            for choice, guess in zip(choices, [*guessed, None], strict=True):
                known.append(choice)
                written.append((choice, now))
                if choice in ends or len(written) == most:
                    return written
                if choice != guess:
                    break
                kept += 1
            guessed = [int(token) for token in look_up(np.array(known, np.intc))]

    def _choice(self, index: int) -> int:
        """The likeliest token behind the batch's token of this index."""
        import numpy as np

        logits = self._llama.llama_get_logits_ith(self._context, index)
        return int(np.ctypeslib.as_array(logits, (self._vocabulary,)).argmax())


def _serve(model: str, threads: str, context: str) -> None:
    """Answer requests, a line of JSON each. The first answer comes after a trial of what may crash."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever the library prints is no answer
    engine = _Engine(model, int(threads), int(context))
    engine.read([1] * 64, 0, 8)
    print(json.dumps(engine.write([1], 64, 2, [])), file=answers, flush=True)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        answer = getattr(engine, name)(*arguments)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
