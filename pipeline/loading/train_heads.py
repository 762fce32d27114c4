"""Training of draft heads for the embedded language model: read, train, keep."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from llm.checkpoints import read_checkpoint
from llm.drafters.learned.compatibility import HeadsError
from llm.drafters.learned.load import Kind, save_heads
from llm.drafters.learned.medusa import MedusaHeads
from llm.language_model import LanguageModel, Sampling
from llm.training.dataset import (
    TrainingText,
    corpus_texts,
    examples,
    head_matrix,
    own_replies,
)
from llm.training.loop import train
from llm.training.train_eagle import EagleObjective, new_eagle
from llm.training.train_medusa import MedusaObjective
from pipeline.agent import choose_agent
from pipeline.config import Settings
from pipeline.loading.language import is_remote, load_embedded, place
from pipeline.text_files import NotUtf8, read_text

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""

__all__ = ["Kind", "Progress", "train_heads"]

LEARNING_RATES: dict[Kind, float] = {"medusa": 1e-3, "eagle": 1e-3}
MEDUSA_HEADS = 4


def train_heads(
    settings: Settings,
    kind: Kind,
    out: Path,
    *,
    corpus: Path | None = None,
    prompts: Path | None = None,
    max_tokens: int = 96,
    steps: int,
    learning_rate: float | None = None,
    seed: int = 0,
    progress: Progress = lambda what, done, total: None,
) -> dict[str, Any]:
    """Train heads for `settings.llm` and write them to the folder `out`, whole or not at all.

    On a text file `corpus`, or on the model's own replies to the lines of `prompts`, given as the settings'
    agent would give them. Returns what was done, with the share of right guesses on held-out texts before and
    after. Raises `HeadsError`, `OSError` in writing, or what loading the model raises; what can be known
    beforehand is told before the work.
    """
    started = time.monotonic()
    if is_remote(settings):
        raise HeadsError(
            "heads draft for a model that runs here, not for a server's: choose one with --model"
        )
    if learning_rate is not None and learning_rate <= 0.0:
        raise HeadsError("the learning rate must be above 0")
    _check_place(out)
    lines = _lines(prompts) if corpus is None else []
    whole = _read(corpus) if corpus is not None else ""
    path = place(settings.llm)
    model = load_embedded(settings.model_copy(update={"draft_model": "", "draft_heads": ""}))
    if corpus is not None:
        texts = corpus_texts(whole, model.tokenizer)
    else:
        texts = _replies(model, settings, lines, max_tokens, progress)
    dataset = examples(model.target, texts, lambda done: progress("reading the texts", done, len(texts)))
    head = head_matrix(model.target)
    objective: MedusaObjective | EagleObjective
    if kind == "medusa":
        objective = MedusaObjective(MedusaHeads(MEDUSA_HEADS, head.shape[1]), head)
    else:
        objective = EagleObjective(new_eagle(read_checkpoint(path)), head)
    report = train(
        objective,
        dataset,
        steps=steps,
        learning_rate=LEARNING_RATES[kind] if learning_rate is None else learning_rate,
        seed=seed,
        progress=lambda step, loss: progress(f"training, loss {loss:.3f}", step, steps),
    )
    save_heads(objective.module, out, path)
    return {
        "kind": kind,
        "base": path.name,
        "out": str(out),
        **asdict(report),
        "seconds": round(time.monotonic() - started, 1),
    }


def _replies(
    model: LanguageModel, settings: Settings, prompts: list[str], max_tokens: int, progress: Progress
) -> list[TrainingText]:
    system = choose_agent(settings.agent, settings.agents_dir).system_prompt()
    texts: list[TrainingText] = []
    for done, prompt in enumerate(prompts):
        texts += own_replies(model, system, [prompt], Sampling(max_tokens=max_tokens))
        progress("writing replies", done + 1, len(prompts))
    return texts


def _lines(prompts: Path | None) -> list[str]:
    if prompts is None:
        raise HeadsError("give a corpus, or a file of prompts to which the model writes its own replies")
    return [line.strip() for line in _read(prompts).splitlines() if line.strip()]


def _read(file: Path) -> str:
    try:
        if file.exists() and not file.is_file():  # a pipe might never end, nor begin
            raise HeadsError(f"{file} is not a file: give a text in UTF-8")
        text = read_text(file)
    except NotUtf8 as error:
        raise HeadsError(str(error)) from error
    except OSError as error:
        raise HeadsError(f"{file} cannot be read: {error.strerror}") from error
    if not text.strip():
        raise HeadsError(f"{file} is empty")
    return text


def _check_place(out: Path) -> None:
    """Raises `HeadsError` where no heads can be written to."""
    there = next(place for place in (out, *out.absolute().parents) if place.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise HeadsError(f"no heads can be written to {out}: {there} is not a folder that you may write to")
