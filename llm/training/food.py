"""What heads are trained on: id sequences, a corpus or the target's own replies, with its hidden states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from llm.drafters.heads import HeadsError
from llm.language_model import Finished, LanguageModel, Message, Sampling
from llm.targets.base import HiddenCache, HiddenTarget, Target
from llm.tokenizer import Tokenizer

WINDOW = 256
"""Tokens of a corpus that are read at a time, from an empty cache."""

SHORTEST = 8
"""A text of fewer tokens teaches nothing about what comes several tokens later."""


@dataclass(frozen=True, slots=True)
class Text:
    """Ids, and from where on they are worth learning: a reply's prompt is only read."""

    ids: tuple[int, ...]
    start: int = 0


@dataclass(frozen=True, slots=True)
class Lesson:
    """A text as the target read it: ids int64 [n], hidden states and embeddings float32 [n, hidden]."""

    ids: torch.Tensor
    states: torch.Tensor
    embeddings: torch.Tensor
    start: int


def corpus_texts(corpus: str, tokenizer: Tokenizer) -> list[Text]:
    """Windows of a corpus, none across an empty line."""
    return [
        Text(ids[start : start + WINDOW])
        for paragraph in corpus.split("\n\n")
        for ids in [tokenizer.encode(paragraph.strip())]
        for start in range(0, len(ids), WINDOW)
        if len(ids) - start >= SHORTEST
    ]


def own_replies(
    model: LanguageModel, system: str, prompts: Sequence[str], sampling: Sampling
) -> Iterator[Text]:
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
            yield Text((*read, *last.ids), len(read) - 1)


def lessons(
    target: Target, texts: Sequence[Text], progress: Callable[[int], None] = lambda done: None
) -> list[Lesson]:
    """Read the texts. Raises `HeadsError` where the target does not hand out hidden states."""
    made = []
    for done, text in enumerate(texts):
        made.append(_lesson(_with_hidden(target), text))
        progress(done + 1)
    return made


def head_matrix(target: Target) -> torch.Tensor:
    """The target's head as a matrix float32 [vocabulary, hidden], found by projecting unit vectors."""
    source = _with_hidden(target)
    cache = _open(source)
    try:
        units = np.eye(source.hidden_size, dtype=np.float32)
        columns = [cache.project(units[start : start + 64]) for start in range(0, len(units), 64)]
    finally:
        cache.close()
    return torch.from_numpy(np.ascontiguousarray(np.concatenate(columns).T))


def _lesson(target: HiddenTarget, text: Text) -> Lesson:
    cache = _open(target)
    try:
        cache.keep_hidden(len(text.ids))
        cache.extend(text.ids, 0)
        states = torch.from_numpy(cache.hidden(len(text.ids)).copy())
    finally:
        cache.close()
    return Lesson(torch.tensor(text.ids), states, torch.from_numpy(target.embed(text.ids)), text.start)


def _with_hidden(target: Target) -> HiddenTarget:
    if not isinstance(target, HiddenTarget):
        raise HeadsError(f"{target.name} does not hand out hidden states, which heads need")
    return target


def _open(target: HiddenTarget) -> HiddenCache:
    cache = target.open()
    if not isinstance(cache, HiddenCache):
        raise HeadsError(f"{target.name} does not hand out hidden states, which heads need")
    return cache
