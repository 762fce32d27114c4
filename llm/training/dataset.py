"""What heads are trained on: texts of a corpus or own replies, with the target's hidden states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from llm.drafters.learned.compatibility import HeadsError, with_hidden_states
from llm.language_model import Finished, LanguageModel, Message, Sampling
from llm.targets.base import HiddenCache, HiddenTarget, Target
from llm.tokenizer import Tokenizer

WINDOW = 256
"""Tokens of a corpus that are read at a time, from an empty cache."""

SHORTEST = 8
"""A shorter text has too few tokens for the heads that look several tokens ahead."""


@dataclass(frozen=True, slots=True)
class TrainingText:
    """Ids, and from where on they are learned from: a reply's prompt is only read."""

    ids: tuple[int, ...]
    start: int = 0


@dataclass(frozen=True, slots=True)
class Example:
    """A text as the target read it: ids int64 [n], hidden states and embeddings float32 [n, hidden]."""

    ids: torch.Tensor
    states: torch.Tensor
    embeddings: torch.Tensor
    start: int


def corpus_texts(corpus: str, tokenizer: Tokenizer) -> list[TrainingText]:
    """Windows of a corpus, none across an empty line."""
    return [
        TrainingText(ids[start : start + WINDOW])
        for paragraph in corpus.split("\n\n")
        for ids in [tokenizer.encode(paragraph.strip())]
        for start in range(0, len(ids), WINDOW)
        if len(ids) - start >= SHORTEST
    ]


def own_replies(
    model: LanguageModel, system: str, prompts: Sequence[str], sampling: Sampling
) -> Iterator[TrainingText]:
    """The model's answer to each prompt, under a system message (empty: none)."""
    for prompt in prompts:
        messages = [Message("system", system)] if system else []
        messages.append(Message("user", prompt))
        conversation = model.open()
        try:
            *_, last = conversation.reply(messages, sampling, cancelled=lambda: False)
        finally:
            conversation.close()
        read = model.prompts.prompt(messages).ids
        if isinstance(last, Finished) and len(last.ids) >= SHORTEST:
            yield TrainingText((*read, *last.ids), len(read) - 1)


def examples(
    target: Target, texts: Sequence[TrainingText], progress: Callable[[int], None] = lambda done: None
) -> list[Example]:
    """Read the texts. Raises `HeadsError` where the target does not hand out hidden states."""
    made = []
    for done, text in enumerate(texts):
        made.append(_example(with_hidden_states(target), text))
        progress(done + 1)
    return made


def head_matrix(target: Target) -> torch.Tensor:
    """The target's head as a matrix float32 [vocabulary, hidden], found by projecting unit vectors."""
    source = with_hidden_states(target)
    cache = _open(source)
    try:
        units = np.eye(source.hidden_size, dtype=np.float32)
        columns = [cache.project(units[start : start + 64]) for start in range(0, len(units), 64)]
    finally:
        cache.close()
    return torch.from_numpy(np.ascontiguousarray(np.concatenate(columns).T))


def _example(target: HiddenTarget, text: TrainingText) -> Example:
    cache = _open(target)
    try:
        cache.keep_hidden(len(text.ids))
        cache.extend(text.ids, 0)
        states = torch.from_numpy(cache.hidden(len(text.ids)).copy())
    finally:
        cache.close()
    return Example(torch.tensor(text.ids), states, torch.from_numpy(target.embed(text.ids)), text.start)


def _open(target: HiddenTarget) -> HiddenCache:
    cache = target.open()
    if not isinstance(cache, HiddenCache):
        raise HeadsError(f"{target.name} does not hand out hidden states, which heads need")
    return cache
