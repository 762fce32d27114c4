"""The language stage: exactness, what speculation gains, and llama.cpp and transformers on the same file.

    python -m bench.llm [--json] [--quick] [--model small] [--threads 2] [--draft-model small]

All contestants take turns in one run, call by call; figures are medians or whole-run rates. llama.cpp is
`llama-cpp-python`, an extra of this benchmark: without it only our own figures are measured.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.llm_passes import MODELS, bench_passes
from bench.llm_players import Answer, LlamaCppPlayer, Player, Rejoinder, TransformersPlayer
from bench.llm_prompts import CHAT, ECHO, QUESTIONS, persona
from bench.report import machine, show
from llm.language_model import LanguageModel, Message, Sampling
from pipeline import catalogue

GOALS = {
    "different_ids": "0",
    "different_bits": "0",
    "plain_over_llama_cpp": ">= 1.1",
    "pass5_over_llama_cpp_pass1": "<= 1.4",
    "pass8_over_llama_cpp_pass1": "<= 1.8",
    "prefill_over_llama_cpp": ">= 1.9",
    "persona_over_llama_cpp": ">= 1.6",
    "first_sentence_over_llama_cpp": "<= 0.55",
    "echo_over_llama_cpp": ">= 2.2",
    "chat_over_plain": ">= 0.97",
    "echo_over_transformers": ">= 8",
    "read_back_tokens_per_pass": ">= 4",
    "kl": "<= 0.002",
    "top1": ">= 0.98",
}
CONTEXT = 2048


class Tally:
    """Answers by contestant; rates are tokens over seconds of the whole run."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = defaultdict(list)

    def rate(self, name: str) -> float:
        answers = self.answers[name]
        return sum(a.tokens for a in answers) / sum(a.total for a in answers)

    def first_sentence(self, name: str) -> float:
        return statistics.median(a.first_sentence for a in self.answers[name])

    def tokens_per_pass(self, name: str) -> float:
        stats = [a.stats for a in self.answers[name] if a.stats is not None]
        return sum(s.committed_tokens for s in stats) / sum(s.passes for s in stats)


def one_call(players: dict[str, Player], questions: Sequence[str], sampling: Sampling) -> Tally:
    """One call of several turns with every contestant, turn by turn in turns; each hears its own answers."""
    tally = Tally()
    histories: dict[str, list[Message]] = {name: [persona()] for name in players}
    for player in players.values():
        player.start()
    for number, question in enumerate(questions):
        for name in _rotated(list(players), number):
            histories[name].append(Message("user", question))
            answer = players[name].answer(histories[name], sampling)
            histories[name].append(Message("assistant", answer.text, answer.ids))
            tally.answers[name].append(answer)
    return tally


def single_turns(players: dict[str, Player], prompts: Sequence[str], sampling: Sampling) -> Tally:
    """Each prompt as the first turn of a call whose persona has been read; contestants take turns."""
    tally = Tally()
    for player in players.values():
        player.start()
        player.answer([persona(), Message("user", "Hello.")], Sampling(max_tokens=1))
    for number, prompt in enumerate(prompts):
        for name in _rotated(list(players), number):
            tally.answers[name].append(players[name].answer([persona(), Message("user", prompt)], sampling))
    return tally


def different_ids(models: dict[str, LanguageModel], plain: LanguageModel, prompts: int, tokens: int) -> int:
    """Tokens that differ between plain decoding and each set of drafters, greedy and sampled.

    Each is also handed the last answer as if it were an earlier revision's: mostly wrong, at times right.
    """
    different = 0
    texts = [*QUESTIONS, *CHAT, *(p for group in ECHO.values() for p in group)]
    players = {name: Rejoinder(model) for name, model in models.items()}
    reference = Rejoinder(plain)
    expected: tuple[int, ...] = ()
    for number in range(prompts):
        messages = [persona(), Message("user", texts[number % len(texts)])]
        temperature = 0.0 if number % 2 == 0 else 0.8
        sampling = Sampling(temperature=temperature, top_p=0.95, max_tokens=tokens, seed=number)
        previous = expected if number % 4 else reference.answer(messages, sampling).ids
        expected = reference.answer(messages, sampling).ids
        for player in players.values():
            ids = player.answer(messages, sampling, draft=previous).ids
            different += abs(len(ids) - len(expected))
            different += sum(a != b for a, b in zip(ids, expected, strict=False))
    return different


def different_bits(model: LanguageModel, rows: int) -> int:
    """Rows whose logits differ in any bit between a random partition into blocks and one row at a time."""
    random = np.random.default_rng(0)
    cache = model.target.open()
    differing = checked = 0
    while checked < rows:
        ids = random.integers(0, model.target.vocabulary, min(128, rows - checked)).tolist()
        cache.truncate(0)
        alone = [cache.extend([token], 1)[0] for token in ids]
        cache.truncate(0)
        place = 0
        while place < len(ids):
            block = ids[place : place + int(random.integers(1, 17))]
            logits = cache.extend(block, len(block))
            differing += sum(not np.array_equal(a, b) for a, b in zip(logits, alone[place:], strict=False))
            place += len(block)
        checked += len(ids)
    cache.close()
    return differing


def second_turn(model: LanguageModel) -> dict[str, int]:
    """What the second turn of a call reads: the question and the template around it, nothing older."""
    call = model.open()
    messages = [persona(), Message("user", QUESTIONS[0])]
    *_, first = call.reply(messages, Sampling(max_tokens=40), cancelled=lambda: False)
    messages += [Message("assistant", first.text, first.ids), Message("user", QUESTIONS[1])]  # type: ignore[union-attr]
    *_, second = call.reply(messages, Sampling(max_tokens=1), cancelled=lambda: False)
    call.close()
    new = len(model.tokenizer.encode(QUESTIONS[1]))
    return {
        "second_turn_prefill_tokens": second.stats.prefilled_tokens,  # type: ignore[union-attr]
        "second_turn_new_words_tokens": new,
    }


@dataclass(frozen=True)
class Bench:
    """One run's set-up: the models are loaded once and every part measures with them."""

    path: Path
    threads: int
    quick: bool
    draft: Path | None
    full: LanguageModel
    plain: LanguageModel

    @classmethod
    def load(cls, model: str, *, threads: int, quick: bool, draft_model: str | None) -> Bench:
        path = catalogue.path(MODELS[model])
        full = LanguageModel.load(path, threads=threads, context=CONTEXT, cache=catalogue.converted())
        full.warm_up()
        draft = catalogue.path(MODELS[draft_model]) if draft_model else None
        return cls(path, threads, quick, draft, full, _with(full, ()))

    def passes(self) -> dict[str, Any]:
        """What a pass costs, beside llama.cpp's."""
        measured = bench_passes(self.path, threads=self.threads, repeats=9)
        ratios: dict[str, Any] = {name: value for name, value in measured.items() if "_over_" in name}
        return {**measured["rejoinder"], **ratios}

    def speed(self) -> dict[str, Any]:
        """Tokens a second and first sentences by kind of prompt, all contestants in turns."""
        players: dict[str, Player] = {"rejoinder": Rejoinder(self.full), "plain": Rejoinder(self.plain)}
        try:
            players["llama.cpp"] = LlamaCppPlayer(self.path, self.full, self.threads, CONTEXT)
        except ImportError:
            print("llama.cpp is left out: pip install llama-cpp-python", file=sys.stderr)
        return _speeds(players, self.quick) | second_turn(self.full)

    def exactness(self) -> dict[str, Any]:
        """Tokens and bits that differ. Both must be none."""
        one_by_one = {name: _with(self.full, (name,)) for name in ("phrase", "suffix", "lookup")}
        prompts, tokens = (20, 64) if self.quick else (200, 128)
        return {
            "different_ids": different_ids(one_by_one | {"all": self.full}, self.plain, prompts, tokens),
            "different_bits": different_bits(self.full, 256 if self.quick else 1024),
        }

    def draft_model(self) -> dict[str, Any]:
        """Open chat with a draft model alone, gate on, against plain decoding."""
        if self.draft is None:
            return {}
        drafted = LanguageModel.load(
            self.path,
            threads=self.threads,
            context=CONTEXT,
            cache=catalogue.converted(),
            drafters=(),
            draft_model=self.draft,
        )
        drafted.warm_up()
        players: dict[str, Player] = {"draft model": Rejoinder(drafted), "plain": Rejoinder(self.plain)}
        tally = single_turns(players, CHAT[: 3 if self.quick else None], Sampling(max_tokens=64))
        return {
            "draft_model_over_plain": tally.rate("draft model") / tally.rate("plain"),
            "draft_model_tokens_per_pass": tally.tokens_per_pass("draft model"),
        }

    def fidelity(self) -> dict[str, Any]:
        """Divergence from float32 of the same file."""
        from bench.llm_fidelity import bench_fidelity

        measured = bench_fidelity(self.path, threads=self.threads)
        return {name: value for name, value in measured.items() if name != "model"}

    def transformers(self) -> dict[str, Any]:
        """Read-backs against Hugging Face `generate` with its own prompt lookup."""
        try:
            peer = TransformersPlayer(self.path, self.full, self.threads)
        except ImportError as missing:
            print(f"transformers is left out: pip install {missing.name}", file=sys.stderr)
            return {}
        players: dict[str, Player] = {"rejoinder": Rejoinder(self.full), "transformers": peer}
        tally = single_turns(players, ECHO["read_back"][:4], Sampling(max_tokens=48))
        return {"echo_over_transformers": tally.rate("rejoinder") / tally.rate("transformers")}


PARTS: dict[str, Callable[[Bench], dict[str, Any]]] = {
    "passes": Bench.passes,
    "speed": Bench.speed,
    "exactness": Bench.exactness,
    "draft_model": Bench.draft_model,
    "fidelity": Bench.fidelity,
    "transformers": Bench.transformers,
}
NOT_QUICK = {"fidelity", "transformers"}


def _speeds(players: dict[str, Player], quick: bool) -> dict[str, Any]:
    """Tokens a second and first sentences by kind of prompt, and ratios to the peers in the same run."""
    sampling = Sampling(max_tokens=64)
    take = 4 if quick else None
    tallies = {
        "persona": one_call(players, QUESTIONS, sampling),
        "chat": single_turns(players, CHAT[:take], sampling),
    }
    echo = {kind: single_turns(players, prompts[:take], sampling) for kind, prompts in ECHO.items()}
    tallies["echo"] = _joined(echo.values())
    figures: dict[str, Any] = {}
    for kind, tally in tallies.items():
        figures[f"{kind}_tokens_per_second"] = {name: tally.rate(name) for name in players}
        figures[f"{kind}_first_sentence_ms"] = {n: 1000 * tally.first_sentence(n) for n in players}
    figures["tokens_per_pass"] = {
        kind: tally.tokens_per_pass("rejoinder") for kind, tally in {**tallies, **echo}.items()
    }
    figures["read_back_tokens_per_pass"] = echo["read_back"].tokens_per_pass("rejoinder")
    figures["chat_over_plain"] = tallies["chat"].rate("rejoinder") / tallies["chat"].rate("plain")
    if "llama.cpp" in players:
        figures["plain_over_llama_cpp"] = tallies["chat"].rate("plain") / tallies["chat"].rate("llama.cpp")
        for kind in ("persona", "echo"):
            ratio = tallies[kind].rate("rejoinder") / tallies[kind].rate("llama.cpp")
            figures[f"{kind}_over_llama_cpp"] = ratio
        persona_tally = tallies["persona"]
        figures["first_sentence_over_llama_cpp"] = persona_tally.first_sentence(
            "rejoinder"
        ) / persona_tally.first_sentence("llama.cpp")
    spec = [a.stats for a in tallies["persona"].answers["rejoinder"] if a.stats is not None]
    figures["persona_drafted"] = dict(sum((s.drafted for s in spec), start=type(spec[0].drafted)()))
    figures["persona_accepted"] = dict(sum((s.accepted for s in spec), start=type(spec[0].accepted)()))
    return figures


def _with(model: LanguageModel, drafters: tuple[str, ...]) -> LanguageModel:
    """The same weights and measured costs with other drafters."""
    other = LanguageModel(model.target, model.tokenizer, drafters=drafters)
    other.pass_costs = model.pass_costs
    return other


def _joined(tallies: Any) -> Tally:
    joined = Tally()
    for tally in tallies:
        for name, answers in tally.answers.items():
            joined.answers[name] += answers
    return joined


def _rotated(names: list[str], by: int) -> list[str]:
    return names[by % len(names) :] + names[: by % len(names)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model", choices=MODELS, default="default")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--draft-model", choices=MODELS, default=None)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--parts", choices=PARTS, nargs="+", help="only these")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    parts = options.parts or [name for name in PARTS if not (options.quick and name in NOT_QUICK)]
    bench = Bench.load(
        options.model, threads=options.threads, quick=options.quick, draft_model=options.draft_model
    )
    figures: dict[str, Any] = {"model": MODELS[options.model], "threads": options.threads, **machine()}
    for part in parts:
        print(f"measuring {part}", file=sys.stderr)
        figures |= PARTS[part](bench)
    show("Language stage", figures, as_json=options.json, goals=GOALS)


if __name__ == "__main__":
    main()
