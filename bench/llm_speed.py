"""Tokens a second and first sentences by kind of prompt, all contestants taking turns in one run."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.llm_players import Answer, Player
from bench.llm_prompts import CHAT, ECHO, QUESTIONS, persona
from bench.progress import Progress
from llm.language_model import Finished, LanguageModel, Message, ReplyStats, Sampling
from pipeline.agent import Agent

PLAIN_PEER, LOOKUP_PEER = "llama.cpp plain", "llama.cpp prompt lookup"
"""Contestants are named after how they were set up."""

_SAMPLING = Sampling(max_tokens=64)
_EXCHANGES = (0, 8, 16, 32)
"""Earlier questions of the calls whose next turn is timed."""
_ANSWER = "We are open Monday to Friday from eight in the morning to six in the evening, except on holidays."
_ROUNDS = 7


class Tally:
    """FactDrafter by contestant; rates are tokens over seconds of the whole run."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = defaultdict(list)

    def rate(self, name: str) -> float:
        answers = self.answers[name]
        return sum(a.tokens for a in answers) / sum(a.total for a in answers)

    def first_sentence(self, name: str) -> float:
        return statistics.median(a.first_sentence for a in self.answers[name])

    def tokens_per_pass(self, name: str) -> float:
        stats = self.stats(name)
        return sum(s.committed_tokens for s in stats) / sum(s.passes for s in stats)

    def stats(self, name: str) -> list[ReplyStats]:
        return [a.stats for a in self.answers[name] if a.stats is not None]


def one_call(players: Mapping[str, Player], questions: Sequence[str], agent: Agent | None = None) -> Tally:
    """One call of several turns with every contestant, turn by turn in turns; each hears its own answers.
    `agent` None: the default one."""
    tally = Tally()
    opening = persona() if agent is None else Message("system", agent.system_prompt())
    histories: dict[str, list[Message]] = {name: [opening] for name in players}
    for player in players.values():
        player.start(None if agent is None else "\n".join(agent.facts))
    for number, question in enumerate(questions):
        for name in _rotated(list(players), number):
            histories[name].append(Message("user", question))
            answer = players[name].answer(histories[name], _SAMPLING)
            histories[name].append(Message("assistant", answer.text, answer.ids))
            tally.answers[name].append(answer)
    return tally


def single_turns(players: Mapping[str, Player], prompts: Sequence[str], what: str) -> Tally:
    """Each prompt as the first turn of a call whose persona has been read; contestants take turns."""
    tally = Tally()
    progress = Progress(what, len(prompts))
    for player in players.values():
        player.start()
        player.answer([persona(), Message("user", "Hello.")], Sampling(max_tokens=1))
    for number, prompt in enumerate(prompts):
        for name in _rotated(list(players), number):
            tally.answers[name].append(players[name].answer([persona(), Message("user", prompt)], _SAMPLING))
        progress.step()
    return tally


def speeds(players: Mapping[str, Player], quick: bool) -> dict[str, Any]:
    """Every kind of prompt. `players`: "rejoinder", "plain" (without drafters) and, at best, llama.cpp, plain
    and with its prompt lookup."""
    take = 4 if quick else None
    tallies = {"persona": one_call(players, QUESTIONS), "chat": single_turns(players, CHAT[:take], "chat")}
    echo = {kind: single_turns(players, prompts[:take], kind) for kind, prompts in ECHO.items()}
    tallies["echo"] = joined(echo.values())
    figures: dict[str, Any] = {}
    for kind, tally in tallies.items():
        figures[f"{kind}_tokens_per_second"] = {name: tally.rate(name) for name in players}
        figures[f"{kind}_first_sentence_ms"] = {n: 1000 * tally.first_sentence(n) for n in players}
    figures["echo_prompts"] = len(tallies["echo"].answers["rejoinder"])
    figures["tokens_per_pass"] = {
        kind: tally.tokens_per_pass("rejoinder") for kind, tally in {**tallies, **echo}.items()
    }
    figures["read_back_tokens_per_pass"] = echo["read_back"].tokens_per_pass("rejoinder")
    figures["chat_over_plain"] = faster(tallies["chat"], "rejoinder", "plain")
    if PLAIN_PEER in players:
        figures["plain_over_llama_cpp"] = faster(tallies["chat"], "plain", PLAIN_PEER)
        figures["persona_over_llama_cpp"] = faster(tallies["persona"], "rejoinder", PLAIN_PEER)
        figures["persona_over_llama_cpp_lookup"] = faster(tallies["persona"], "rejoinder", LOOKUP_PEER)
        figures["echo_over_llama_cpp"] = faster(tallies["echo"], "rejoinder", PLAIN_PEER)
        figures["echo_over_llama_cpp_lookup"] = faster(tallies["echo"], "rejoinder", LOOKUP_PEER)
        ours, theirs = map(tallies["persona"].first_sentence, ("rejoinder", PLAIN_PEER))
        figures["first_sentence_over_llama_cpp"] = ours / theirs
    for kind, tally in tallies.items():
        stats = tally.stats("rejoinder")
        figures[f"{kind}_drafted"] = dict(sum((s.drafted for s in stats), start=Counter[str]()))
        figures[f"{kind}_accepted"] = dict(sum((s.accepted for s in stats), start=Counter[str]()))
    return figures


def second_turn(model: LanguageModel) -> dict[str, int]:
    """What the second turn of a call reads: the question and the template around it, nothing older."""
    call = model.open()
    messages = [persona(), Message("user", QUESTIONS[0])]
    *_, first = call.reply(messages, Sampling(max_tokens=40), cancelled=lambda: False)
    assert isinstance(first, Finished)
    messages += [Message("assistant", first.text, first.ids), Message("user", QUESTIONS[1])]
    *_, second = call.reply(messages, Sampling(max_tokens=1), cancelled=lambda: False)
    assert isinstance(second, Finished)
    call.close()
    return {
        "second_turn_prefill_tokens": second.stats.prefilled_tokens,
        "second_turn_new_words_tokens": len(model.tokenizer.encode(QUESTIONS[1])),
    }


def first_turns(model: LanguageModel) -> dict[str, float]:
    """The first turn of calls that begin with their agent's prompt, nothing read ahead, against the same
    question as a later turn of the same call."""
    opening, question = persona(), Message("user", QUESTIONS[0])
    model.read_prompt(opening.text, lambda: False)
    turns: dict[str, list[ReplyStats]] = {"first": [], "later": []}
    for _ in range(_ROUNDS):
        call = model.open()
        messages = [opening, question]
        for turn in ("first", "later", "later"):
            *_, finished = call.reply(messages, Sampling(max_tokens=1), cancelled=lambda: False)
            assert isinstance(finished, Finished)
            turns[turn].append(finished.stats)
            messages += [Message("assistant", finished.text, finished.ids), question]
        call.close()
    first, later = (statistics.median(s.ttft or 0.0 for s in turns[turn]) for turn in ("first", "later"))
    return {
        "first_turn_prefill_tokens": turns["first"][0].prefilled_tokens,
        "first_turn_prompt_tokens": turns["first"][0].prompt_tokens,
        "first_turn_ttft_ms": 1000 * first,
        "first_turn_ttft_over_later": first / later,
    }


def later_turns(model: LanguageModel) -> dict[str, dict[int, float]]:
    """Milliseconds to the first token of one question by how many tokens its prompt has. All but the question
    are in the cache, so only attention's share may grow. Calls of different length take turns."""
    question = Message("user", QUESTIONS[0])
    calls = []
    for exchanges in _EXCHANGES:
        history = [persona()]
        for number in range(exchanges):
            history += [Message("user", f"Question {number}?"), Message("assistant", _ANSWER)]
        call = model.open()
        call.prefill([*history, Message("user", "")], lambda: False)
        calls.append((call, [*history, question]))
    times: dict[int, list[float]] = defaultdict(list)
    for _ in range(_ROUNDS):
        for call, messages in calls:
            *_, finished = call.reply(messages, Sampling(max_tokens=1), cancelled=lambda: False)
            assert isinstance(finished, Finished)
            assert finished.stats.ttft is not None
            times[finished.stats.prompt_tokens].append(1000 * finished.stats.ttft)
            call.prefill([*messages[:-1], Message("user", "")], lambda: False)
    for call, _ in calls:
        call.close()
    return {"later_turn_ttft_ms": {tokens: statistics.median(each) for tokens, each in times.items()}}


def faster(tally: Tally, name: str, than: str) -> float:
    """How many times as many tokens a second."""
    return tally.rate(name) / tally.rate(than)


def joined(tallies: Iterable[Tally]) -> Tally:
    """All answers together."""
    all_of_them = Tally()
    for tally in tallies:
        for name, answers in tally.answers.items():
            all_of_them.answers[name] += answers
    return all_of_them


def _rotated(names: list[str], by: int) -> list[str]:
    return names[by % len(names) :] + names[: by % len(names)]
