"""The contestants of the language benchmark: each answers a call's turns and keeps its cache meanwhile."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bench.llm_passes import LlamaCpp
from llm.cache import common_prefix
from llm.language_model import Finished, LanguageModel, Message, ReplyStats, Sampling
from llm.sentences import SentenceStream
from llm.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Answer:
    """Seconds since the prompt was handed over; `stats` where the contestant has them."""

    ids: tuple[int, ...]
    text: str
    first_token: float
    first_sentence: float
    total: float
    stats: ReplyStats | None = None

    @property
    def tokens(self) -> int:
        """The end counts as one: it was generated too."""
        return len(self.ids) + 1


class Player(Protocol):
    def start(self) -> None:
        """A new call: nothing is cached."""
        ...

    def answer(self, messages: Sequence[Message], sampling: Sampling) -> Answer: ...


class Rejoinder:
    """Ours, with whatever drafters the model was given."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._call = model.open()

    def start(self) -> None:
        self._call.close()
        self._call = self._model.open()

    def answer(self, messages: Sequence[Message], sampling: Sampling, draft: Sequence[int] = ()) -> Answer:
        before = time.perf_counter()
        for event in self._call.reply(messages, sampling, draft=draft, cancelled=lambda: False):
            if isinstance(event, Finished):
                stats = event.stats
                end = time.perf_counter() - before
                first = (stats.first_token or stats.started) - stats.started
                sentence = (stats.first_sentence or stats.started) - stats.started
                return Answer(event.ids, event.text, first, sentence, end, stats)
        raise AssertionError("a reply always finishes")


class LlamaCppPlayer:
    """llama.cpp's plain greedy decoding on the same file, its cache kept like ours."""

    def __init__(self, model: Path, reference: LanguageModel, threads: int, context: int) -> None:
        self._engine = LlamaCpp(model, threads, context)
        self._prompts, self._tokenizer = reference.prompts, reference.tokenizer
        self._vocabulary = reference.target.vocabulary
        self._ids: list[int] = []

    def start(self) -> None:
        self._ids = []

    def answer(self, messages: Sequence[Message], sampling: Sampling) -> Answer:
        before = time.perf_counter()
        prompt = self._prompts.prompt(messages).ids
        kept = common_prefix(self._ids, prompt[:-1])
        self._ids, unread = prompt[:kept], prompt[kept:]
        reply: list[int] = []
        timed = _Timed(self._tokenizer, before)
        while len(reply) < sampling.max_tokens:
            self._engine.read(unread, len(self._ids), 1)
            self._ids += unread
            token = _best(self._engine, self._vocabulary)
            if token in self._tokenizer.ends:
                break
            reply.append(token)
            unread = [token]
            timed.push(token)
        return timed.answer(reply)


class TransformersPlayer:
    """Hugging Face `generate` in bfloat16 with its own prompt lookup. `ImportError` without accelerate."""

    def __init__(self, model: Path, reference: LanguageModel, threads: int) -> None:
        import torch
        import transformers

        if find_spec("accelerate") is None:
            raise ImportError("transformers reads GGUF files with accelerate", name="accelerate")
        torch.set_num_threads(threads)
        self._prompts, self._tokenizer = reference.prompts, reference.tokenizer
        self._model: Any = transformers.AutoModelForCausalLM.from_pretrained(
            model.parent, gguf_file=model.name, dtype=torch.bfloat16
        )

    def start(self) -> None:
        pass

    def answer(self, messages: Sequence[Message], sampling: Sampling) -> Answer:
        import torch

        before = time.perf_counter()
        prompt = self._prompts.prompt(messages).ids
        with torch.inference_mode():
            output = self._model.generate(
                torch.tensor([prompt]),
                max_new_tokens=sampling.max_tokens,
                do_sample=False,
                prompt_lookup_num_tokens=7,
                eos_token_id=sorted(self._tokenizer.ends),
                pad_token_id=min(self._tokenizer.ends),
            )
        ids = [int(i) for i in output[0, len(prompt) :]]
        total = time.perf_counter() - before
        ids = ids[: next((n for n, i in enumerate(ids) if i in self._tokenizer.ends), len(ids))]
        return Answer(tuple(ids), self._tokenizer.decode(ids), total, total, total)


class _Timed:
    """Notes when the first token and the first sentence of a reply were there."""

    def __init__(self, tokenizer: Tokenizer, before: float) -> None:
        self._tokenizer, self._before = tokenizer, before
        self._sentences = SentenceStream()
        self._first_token: float | None = None
        self._first_sentence: float | None = None

    def push(self, token: int) -> None:
        now = time.perf_counter() - self._before
        if self._first_token is None:
            self._first_token = now
        if self._first_sentence is None and self._sentences.push(self._tokenizer.decode((token,))):
            self._first_sentence = now

    def answer(self, ids: Sequence[int]) -> Answer:
        total = time.perf_counter() - self._before
        first = total if self._first_token is None else self._first_token
        sentence = total if self._first_sentence is None else self._first_sentence
        return Answer(tuple(ids), self._tokenizer.decode(ids), first, sentence, total)


def _best(engine: LlamaCpp, vocabulary: int) -> int:
    """llama.cpp's most likely token after its last pass."""
    logits = engine._llama.llama_get_logits_ith(engine._context, -1)
    return int(np.ctypeslib.as_array(logits, (vocabulary,)).argmax())
