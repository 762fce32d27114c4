"""Agents that nothing was developed with: what speculation gains on their questions, and by which drafter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.llm_players import Player
from bench.llm_speed import LOOKUP_PEER, PLAIN_PEER, Tally, faster, joined, one_call
from bench.progress import Progress
from fixtures.unseen_agents import UNSEEN_AGENTS

_ABLATED_QUESTIONS = 8
"""To each agent; there are twice as many contestants as drafters."""


def unseen_speeds(players: Mapping[str, Player], *, quick: bool) -> dict[str, Any]:
    """One call of each agent. `players` as in `speeds`; answers are graded for ours alone, which are plain
    decoding's."""
    tally, right, asked = Tally(), 0, 0
    progress = Progress("unseen agents", len(UNSEEN_AGENTS))
    for agent, questions in UNSEEN_AGENTS:
        put = questions[: 3 if quick else None]
        call = one_call(players, [question.text for question in put], agent)
        said = zip(put, call.answers["rejoinder"], strict=True)
        right += sum(question.is_right(answer.text) for question, answer in said)
        asked += len(put)
        tally = joined([tally, call])
        progress.step()
    figures: dict[str, Any] = {
        "questions": asked,
        "answers_right": right / asked,
        "tokens_per_second": {name: tally.rate(name) for name in players},
        "first_sentence_ms": {name: 1000 * tally.first_sentence(name) for name in players},
        "tokens_per_pass": tally.tokens_per_pass("rejoinder"),
        "over_plain": faster(tally, "rejoinder", "plain"),
        "first_sentence_over_plain": tally.first_sentence("rejoinder") / tally.first_sentence("plain"),
    }
    if PLAIN_PEER in players:
        ours, theirs = map(tally.first_sentence, ("rejoinder", PLAIN_PEER))
        figures |= {
            "over_llama_cpp": faster(tally, "rejoinder", PLAIN_PEER),
            "over_llama_cpp_lookup": faster(tally, "rejoinder", LOOKUP_PEER),
            "first_sentence_over_llama_cpp": ours / theirs,
        }
    return figures


def ablation(players: Mapping[str, Player], *, quick: bool) -> dict[str, dict[str, float]]:
    """The unseen agents' first questions with every set of drafters, all taking turns; each set's figures."""
    progress = Progress("sets of drafters", len(UNSEEN_AGENTS))
    calls = []
    for agent, questions in UNSEEN_AGENTS:
        put = questions[: 2 if quick else _ABLATED_QUESTIONS]
        calls.append(one_call(players, [question.text for question in put], agent))
        progress.step()
    tally = joined(calls)
    return {
        name: {
            "tokens_per_second": tally.rate(name),
            "tokens_per_pass": tally.tokens_per_pass(name),
            "first_sentence_ms": 1000 * tally.first_sentence(name),
        }
        for name in players
    }
