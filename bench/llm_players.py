"""The contestants of the language benchmark: each answers a call's turns and keeps its cache meanwhile."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from bench.llm_cpp import LlamaCpp
from bench.llm_prompts import facts
from llm.cache import common_prefix
from llm.language_model import Finished, LanguageModel, Message, ReplyStats, Sampling
from llm.sentences import SentenceStream


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
    def start(self, known: str | None = None) -> None:
        """A new call: nothing is cached. `known`: the agent's facts; None: the default agent's."""
        ...

    def answer(self, messages: Sequence[Message], sampling: Sampling) -> Answer: ...


class Rejoinder:
    """Ours, with whatever drafters the model was given; they are taught the agent's facts, as in a call."""

    def __init__(self, model: LanguageModel, tenant: str = "") -> None:
        self._model, self._tenant = model, tenant
        self._call = model.open(tenant=tenant)

    def start(self, known: str | None = None) -> None:
        self._call.close()
        self._call = self._model.open(tenant=self._tenant)
        self._call.learn(facts() if known is None else known)

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
    """llama.cpp's greedy decoding on the same file, its cache kept like ours; plain, or with its own prompt
    lookup."""

    def __init__(self, engine: LlamaCpp, reference: LanguageModel, *, looks_up: bool = False) -> None:
        self._engine, self._looks_up = engine, looks_up
        self._prompts, self._tokenizer = reference.prompts, reference.tokenizer
        self._ids: list[int] = []

    def start(self, known: str | None = None) -> None:
        self._ids = []

    def answer(self, messages: Sequence[Message], sampling: Sampling) -> Answer:
        before = time.perf_counter()
        prompt = self._prompts.prompt(messages).ids
        kept = common_prefix(self._ids, prompt[:-1])
        ends = self._tokenizer.ends
        prepared = time.perf_counter() - before
        if self._looks_up:
            written = self._engine.write_looking_up(prompt, kept, sampling.max_tokens, ends)
        else:
            written = self._engine.write(prompt[kept:], kept, sampling.max_tokens, ends)
        times = [prepared + seconds for _, seconds in written]
        ids = tuple(token for token, _ in written if token not in ends)
        self._ids = [*prompt, *ids[: len(written) - 1]]
        return Answer(ids, self._tokenizer.decode(ids), times[0], self._first_sentence(ids, times), times[-1])

    def _first_sentence(self, ids: Sequence[int], times: Sequence[float]) -> float:
        """When the token came that showed the first sentence to be over."""
        sentences = SentenceStream()
        tokens = zip(ids, times, strict=False)
        return next((at for i, at in tokens if sentences.push(self._tokenizer.decode((i,)))), times[-1])


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

    def start(self, known: str | None = None) -> None:
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
