"""Whether speculation changes anything: tokens against plain decoding, bits against one row at a time."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.llm_players import Rejoinder
from bench.llm_prompts import CHAT, ECHO, QUESTIONS, persona
from bench.progress import Progress
from llm.language_model import LanguageModel, Message, Sampling

TURNS = 10
"""Prompts of one call. Every call asks others, in an order of its own, so that no context comes twice."""

_TEXTS = (*QUESTIONS, *CHAT, *(prompt for prompts in ECHO.values() for prompt in prompts))


@dataclass(frozen=True, slots=True)
class Turn:
    """One prompt to compare the answers to. `opens`: it is the first of its call."""

    question: str
    sampling: Sampling
    opens: bool


def turns(prompts: int, tokens: int, skip: int = 0) -> Iterator[Turn]:
    """`prompts` turns behind the first `skip`, in whole calls of ten; greedy and sampled calls alternate."""
    for call in range(skip // TURNS, -(-(skip + prompts) // TURNS)):
        sampling = Sampling(max_tokens=tokens, temperature=0.8 * (call % 2), top_p=0.95, seed=call)
        for number, question in enumerate(random.Random(call).sample(_TEXTS, TURNS)):
            yield Turn(question, sampling, opens=number == 0)


def different_ids(
    contestants: Mapping[str, LanguageModel],
    plain: LanguageModel,
    *,
    prompts: int,
    tokens: int,
    skip: int = 0,
    most_seconds: float = float("inf"),
) -> dict[str, Any]:
    """Tokens in which the replies of each contestant differ from plain decoding's, one plain run for all.

    Everyone hears plain decoding's answers. Each is also handed, as an earlier revision's reply, either the
    answer to the turn before, which is mostly wrong, or this one's with one token changed. Ends at a prompt
    once `most_seconds` have passed; `compared_prompts` says how many there were.
    """
    reference = Rejoinder(plain)
    players = {name: Rejoinder(model, tenant="exactness") for name, model in contestants.items()}
    different, compared, accepted = 0, dict.fromkeys(players, 0), dict.fromkeys(players, 0)
    progress = Progress("exactness", prompts, most_seconds)
    history: list[Message] = []
    previous: tuple[int, ...] = ()
    done = sampled = 0
    for done, turn in enumerate(turns(prompts, tokens, skip), 1):
        if turn.opens:
            history = [persona()]
            for player in (reference, *players.values()):
                player.start()
        history.append(Message("user", turn.question))
        expected = reference.answer(history, turn.sampling)
        revision = _one_changed(expected.ids) if done % 2 else previous
        for name, player in players.items():
            answer = player.answer(history, turn.sampling, draft=revision)
            different += abs(len(answer.ids) - len(expected.ids))
            different += sum(a != b for a, b in zip(answer.ids, expected.ids, strict=False))
            compared[name] += len(expected.ids)
            accepted[name] += 0 if answer.stats is None else answer.stats.accepted.total()
        history.append(Message("assistant", expected.text, expected.ids))
        previous = expected.ids
        sampled += turn.sampling.temperature > 0.0
        progress.step(f", {different} ids differ")
        if progress.out_of_time:
            break
    return {
        "different_ids": different,
        "compared_prompts": done,
        "compared_prompts_sampled": sampled,
        "compared_most_tokens": tokens,
        "compared_tokens": compared,
        "compared_tokens_drafted": accepted,
    }


def different_bits(model: LanguageModel, rows: int) -> dict[str, int]:
    """Rows whose logits differ in any bit between a random partition into blocks and one row at a time."""
    numbers = np.random.default_rng(0)
    cache = model.target.open()
    progress = Progress("bits", rows)
    differing = checked = 0
    while checked < rows:
        ids = numbers.integers(0, model.target.vocabulary, min(128, rows - checked)).tolist()
        cache.truncate(0)
        alone = [cache.extend([token], 1)[0] for token in ids]
        cache.truncate(0)
        place = 0
        while place < len(ids):
            block = ids[place : place + int(numbers.integers(1, 17))]
            logits = cache.extend(block, len(block))
            for row, expected in zip(logits, alone[place:], strict=False):
                differing += not np.array_equal(row, expected)
                progress.step()
            place += len(block)
        checked += len(ids)
    cache.close()
    return {"different_bits": differing, "compared_rows": checked}


def _one_changed(ids: tuple[int, ...]) -> tuple[int, ...]:
    """A reply with its middle token exchanged for its first."""
    middle = len(ids) // 2
    return (*ids[:middle], *ids[:1], *ids[middle + 1 :])
