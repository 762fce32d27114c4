"""The language stage: exactness, what speculation gains, and llama.cpp and transformers on the same file.

    python -m bench.llm [--json] [--quick] [--model small] [--threads 2] [--parts speed exactness]

All contestants take turns in one run, call by call; figures are medians or whole-run rates. llama.cpp and
transformers' reader of GGUF files are extras: pip install 'rejoinder[bench]'. llama.cpp runs in a process of
its own: where it is missing or crashes, only our own figures are measured. Its build for the machine's own
processor crashes in its AMX code when GCC 12 compiled it; this leaves that code out:

    CMAKE_ARGS="-DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_AVX512=ON -DGGML_AVX512_VNNI=ON" pip install ...

The comparison of tokens takes hours where passes are slow, so it ends after --minutes and tells how much was
compared. All of it: --parts exactness --minutes 0. To go on behind the first 60 prompts: --skip 60.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from bench.llm_cpp import llama_cpp_or_none
from bench.llm_exactness import TURNS, different_bits, different_ids
from bench.llm_fidelity import bench_fidelity
from bench.llm_learned import bench_learned
from bench.llm_passes import MODELS, bench_passes
from bench.llm_players import LlamaCppPlayer, Player, Rejoinder, TransformersPlayer
from bench.llm_prompts import CHAT, ECHO
from bench.llm_speed import (
    LOOKUP_PEER,
    PLAIN_PEER,
    first_turns,
    later_turns,
    second_turn,
    single_turns,
    speeds,
)
from bench.llm_unseen import ablation, unseen_speeds
from bench.report import Goal, machine, report
from llm.language_model import FREE_DRAFTERS, LanguageModel
from pipeline.models import catalogue

GOALS = (
    Goal("ids that differ from plain decoding", "different_ids", "==", 0),
    Goal("ids that differ with learned drafters", "learned_different_ids", "==", 0),
    Goal("rows whose bits differ", "different_bits", "==", 0),
    Goal("unseen agents, times plain decoding", "unseen.over_plain", ">=", 1.2),
    Goal("unseen agents, times llama.cpp plain", "unseen.over_llama_cpp", ">=", 1.3),
    Goal("unseen agents, times llama.cpp with prompt lookup", "unseen.over_llama_cpp_lookup", ">=", 1.2),
    Goal("unseen agents, first sentence, of plain's time", "unseen.first_sentence_over_plain", "<=", 0.85),
    Goal("unseen agents, answers right", "unseen.answers_right", ">=", 0.75),
    Goal("plain decoding, times llama.cpp plain", "plain_over_llama_cpp", ">=", 1.1),
    Goal("a pass over 5, of llama.cpp's over 1", "pass5_over_llama_cpp_pass1", "<=", 1.4),
    Goal("a pass over 8, of llama.cpp's over 1", "pass8_over_llama_cpp_pass1", "<=", 1.8),
    Goal("reading a prompt, times llama.cpp", "prefill_over_llama_cpp", ">=", 1.9),
    Goal("a call's first token, of later turns' time", "first_turn_ttft_over_later", "<=", 1.1),
    Goal("the persona developed with, times llama.cpp plain", "persona_over_llama_cpp", ">=", 1.6),
    Goal("the same, times llama.cpp with prompt lookup", "persona_over_llama_cpp_lookup", ">=", 1.3),
    Goal("its first sentence, of llama.cpp's time", "first_sentence_over_llama_cpp", "<=", 0.55),
    Goal("read-backs and the like, times llama.cpp plain", "echo_over_llama_cpp", ">=", 2.2),
    Goal("the same, times llama.cpp with prompt lookup", "echo_over_llama_cpp_lookup", ">=", 1.3),
    Goal("open talk, times plain decoding", "chat_over_plain", ">=", 0.97),
    Goal("read-backs, times transformers with prompt lookup", "echo_over_transformers", ">=", 8),
    Goal("tokens a pass on read-backs", "read_back_tokens_per_pass", ">=", 4),
    Goal("divergence from float32", "kl", "<=", 0.002),
    Goal("the same first choice as float32", "top1", ">=", 0.98),
)
CONTEXT = 2048
_DRAFT_MODELS = {"default": "small"}
"""The classic pair: a smaller model of the same vocabulary."""


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for. `prompts`, `tokens`, `minutes` and `skip` are for the comparison of tokens.

    `mtp_model`: a checkpoint with a multi-token-prediction layer.
    """

    model: str
    threads: int
    quick: bool
    prompts: int
    tokens: int
    minutes: float
    skip: int
    mtp_model: Path | None = None


class Bench:
    """One run's set-up: the models are loaded once and every part measures with them."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.left_out: list[str] = []
        self.path = catalogue.path(MODELS[options.model])

    @cached_property
    def full(self) -> LanguageModel:
        """With every drafter that costs nothing."""
        return self._load()

    @cached_property
    def plain(self) -> LanguageModel:
        """Without drafters."""
        return self._with()

    @cached_property
    def drafted(self) -> LanguageModel | None:
        """The model with a smaller one as its only drafter; None where there is no smaller one."""
        smaller = _DRAFT_MODELS.get(self.options.model)
        if smaller is None:
            return None
        return self._load(drafters=(), draft_model=catalogue.path(MODELS[smaller]))

    def passes(self) -> dict[str, Any]:
        """What a pass costs, beside llama.cpp's."""
        measured = bench_passes(self.path, threads=self.options.threads, repeats=9)
        ratios: dict[str, Any] = {name: value for name, value in measured.items() if "_over_" in name}
        if "llama.cpp" not in measured:
            self.left_out.append("llama.cpp")
        peer = {f"llama_cpp_{name}": value for name, value in measured.get("llama.cpp", {}).items()}
        return {**measured["rejoinder"], **peer, **ratios}

    def speed(self) -> dict[str, Any]:
        """Tokens a second and first sentences by kind of prompt, all contestants in turns."""
        with self._contestants() as players:
            measured = speeds(players, self.options.quick)
        return measured | first_turns(self.full) | second_turn(self.full) | later_turns(self.full)

    def unseen(self) -> dict[str, Any]:
        """The same contestants on agents that nothing was developed with."""
        with self._contestants() as players:
            return {"unseen": unseen_speeds(players, quick=self.options.quick)}

    def ablation(self) -> dict[str, Any]:
        """Each drafter alone, and all but each, on the same agents."""
        sets = {"none": (), "all": FREE_DRAFTERS}
        for name in FREE_DRAFTERS:
            sets[f"{name} alone"] = (name,)
            sets[f"all but {name}"] = tuple(other for other in FREE_DRAFTERS if other != name)
        players = {name: Rejoinder(self._with(*drafters)) for name, drafters in sets.items()}
        return {"ablation": ablation(players, quick=self.options.quick)}

    @contextmanager
    def _contestants(self) -> Iterator[dict[str, Player]]:
        """Ours with and without drafters and, where there is one, llama.cpp with and without its own."""
        players: dict[str, Player] = {"rejoinder": Rejoinder(self.full), "plain": Rejoinder(self.plain)}
        engines = {}
        for name in (PLAIN_PEER, LOOKUP_PEER):
            engine = llama_cpp_or_none(self.path, self.options.threads, CONTEXT)
            if engine is None:
                self.left_out.append("llama.cpp")
                break
            engines[name] = engine
            players[name] = LlamaCppPlayer(engine, self.full, looks_up=name == LOOKUP_PEER)
        yield players
        for engine in engines.values():
            engine.close()

    def exactness(self) -> dict[str, Any]:
        """Tokens and bits that differ. Both must be none."""
        options = self.options
        contestants = {name: self._with(name) for name in FREE_DRAFTERS} | {"all": self.full}
        if self.drafted is not None and not options.quick:
            contestants["draft model"] = self.drafted
        ids = different_ids(
            contestants,
            self.plain,
            prompts=options.prompts,
            tokens=options.tokens,
            skip=options.skip,
            most_seconds=60.0 * options.minutes or float("inf"),
        )
        return ids | different_bits(self.full, 256 if options.quick else 1024)

    def draft_model(self) -> dict[str, Any]:
        """Open chat with a draft model alone, gate on, against plain decoding."""
        if self.drafted is None:
            return {}
        players = {"draft model": Rejoinder(self.drafted), "plain": Rejoinder(self.plain)}
        tally = single_turns(players, CHAT[: 3 if self.options.quick else None], "draft model")
        return {
            "draft_model_over_plain": tally.rate("draft model") / tally.rate("plain"),
            "draft_model_tokens_per_pass": tally.tokens_per_pass("draft model"),
        }

    def learned(self) -> dict[str, Any]:
        """The drafters from inside the model, on the smallest one."""
        options = self.options
        steps = 40 if options.quick else 300
        return bench_learned(options.threads, CONTEXT, steps=steps, mtp_model=options.mtp_model)

    def fidelity(self) -> dict[str, Any]:
        """Divergence from float32 of the same file."""
        measured = bench_fidelity(self.path, threads=self.options.threads)
        return {name: measured[name] for name in ("kl", "top1", "tokens")}

    def transformers(self) -> dict[str, Any]:
        """Read-backs against Hugging Face `generate` with its own prompt lookup."""
        try:
            peer = TransformersPlayer(self.path, self.full, self.options.threads)
        except ImportError as missing:
            print(f"transformers is left out: pip install {missing.name}", file=sys.stderr)
            self.left_out.append("transformers")
            return {}
        players: dict[str, Player] = {"rejoinder": Rejoinder(self.full), "transformers": peer}
        tally = single_turns(players, ECHO["read_back"][:4], "transformers")
        return {"echo_over_transformers": tally.rate("rejoinder") / tally.rate("transformers")}

    def _load(
        self, drafters: tuple[str, ...] = FREE_DRAFTERS, draft_model: Path | None = None
    ) -> LanguageModel:
        model = LanguageModel.load(
            self.path,
            threads=self.options.threads,
            context=CONTEXT,
            cache=catalogue.converted(),
            drafters=drafters,
            draft_model=draft_model,
        )
        model.warm_up()
        return model

    def _with(self, *drafters: str) -> LanguageModel:
        """The same weights and measured costs with these drafters alone."""
        other = LanguageModel(self.full.target, self.full.tokenizer, drafters=drafters)
        other.pass_costs = self.full.pass_costs
        return other


PARTS: dict[str, Callable[[Bench], dict[str, Any]]] = {
    "passes": Bench.passes,
    "speed": Bench.speed,
    "unseen": Bench.unseen,
    "ablation": Bench.ablation,
    "exactness": Bench.exactness,
    "draft_model": Bench.draft_model,
    "learned": Bench.learned,
    "fidelity": Bench.fidelity,
    "transformers": Bench.transformers,
}
NOT_QUICK = {"ablation", "fidelity", "transformers"}


def measure(bench: Bench, part: str) -> dict[str, Any]:
    """One part's figures, told on stderr at once: a run that is cut short has not measured in vain."""
    print(f"measuring {part}", file=sys.stderr)
    started = time.monotonic()
    figures = PARTS[part](bench)
    seconds = time.monotonic() - started
    print(f"  {part} took {seconds:.0f} s: {json.dumps(figures)}", file=sys.stderr)
    return figures


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=MODELS, default="default")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="fewer prompts, and not all parts")
    parser.add_argument("--parts", choices=PARTS, nargs="+", help="only these")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--prompts", type=int, help="to compare tokens on (200; --quick: 20)")
    parser.add_argument("--tokens", type=int, help="of each reply at most (128; --quick: 64)")
    parser.add_argument("--minutes", type=float, default=8.0, help="of comparing tokens (8; 0: no end)")
    parser.add_argument("--skip", type=int, default=0, help=f"prompts to leave out, in calls of {TURNS}")
    parser.add_argument("--mtp-model", type=Path, help="a checkpoint with a multi-token-prediction layer")
    return parser.parse_args()


def main() -> None:
    asked = parse()
    prompts, tokens = (20, 64) if asked.quick else (200, 128)
    options = Options(
        asked.model,
        asked.threads,
        asked.quick,
        asked.prompts or prompts,
        asked.tokens or tokens,
        asked.minutes,
        asked.skip,
        asked.mtp_model,
    )
    parts = asked.parts or [name for name in PARTS if not (asked.quick and name in NOT_QUICK)]
    bench = Bench(options)
    figures: dict[str, Any] = {"model": MODELS[asked.model], "threads": asked.threads, **machine()}
    for part in parts:
        figures |= measure(bench, part)
    cut = ["--quick"] * asked.quick + ["--parts"] * bool(asked.parts) + sorted(set(bench.left_out))
    sys.exit(report("Language stage", figures, GOALS, as_json=asked.json, left_out=cut))


if __name__ == "__main__":
    main()
