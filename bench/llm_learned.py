"""The drafters from inside the model, each alone, against plain decoding of the same model.

    python -m bench.llm --parts learned [--quick] [--mtp-model PATH]

Medusa and EAGLE heads are trained first, as `rejoinder llm train-heads` does, on the smallest model's own
replies to questions that are not among those measured; early exit needs no training. No model of the
catalogue has a multi-token-prediction layer: `--mtp-model` names a checkpoint that has one, else its row says
so. A gate that finds a drafter too slow or too seldom right stops asking it, so a loss shows as a rate near 1
with few tokens drafted.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.llm_players import Player, Rejoinder
from bench.llm_prompts import CHAT, QUESTIONS
from bench.llm_speed import Tally, single_turns
from llm.drafters.learned.load import EARLY_EXIT, MTP, open_draft_heads
from llm.language_model import LanguageModel
from pipeline.config import Settings
from pipeline.loading.train_heads import Kind, train_heads
from pipeline.models import catalogue

MODEL = "smollm2-135m"
TRAINED: tuple[Kind, ...] = ("medusa", "eagle")
EXIT_LAYER = 20
"""Of the model's thirty."""
REPLY_TOKENS = 48
MEASURED = (*QUESTIONS, *CHAT)
NO_MTP = "skipped: name a checkpoint with a prediction layer (MiMo, DeepSeek-V3, GGUF nextn) by --mtp-model"

TRAINING = (
    "When do you close on weekdays?",
    "Are you there on Saturday morning?",
    "Can I come on a Sunday?",
    "What is your address?",
    "Which building is next to you?",
    "Can I leave my car at your place?",
    "What is the price of a check-up?",
    "How expensive is a filling?",
    "Who will look at my teeth?",
    "Do I need an appointment?",
    "Until when can I call off a visit for free?",
    "What do you charge if I cancel too late?",
    "May I pay in cash?",
    "Will my insurance pay for it?",
    "I have never been to you before, may I come?",
    "It is night and my tooth hurts badly. Whom do I call?",
    "Tell me what I should know before I come.",
    "How should I brush my teeth?",
    "Why does sugar harm teeth?",
    "What is a root canal?",
    "My son is afraid of the dentist. What can I do?",
    "Is whitening safe?",
    "Please repeat my name: Robert Hale.",
    "My number is five one seven, three three zero. Please read it back.",
)
"""Questions whose replies the heads are trained on; none of those measured."""


def bench_learned(threads: int, context: int, *, steps: int, mtp_model: Path | None) -> dict[str, Any]:
    """A row a drafter: its rate over plain decoding's, tokens a pass, what was accepted, ids that differ.

    `steps`: of training. Raises `HeadsError` where `mtp_model` has no prediction layer.
    """
    figures: dict[str, Any] = {"learned_model": MODEL, "learned_mtp": NO_MTP}
    measured: dict[str, dict[str, Any]] = {}
    if mtp_model is not None:  # first: a checkpoint without such a layer is told before the training
        checkpoint = _load(mtp_model, threads, context)
        measured = rows(checkpoint, {"mtp": _drafting(checkpoint, mtp_model, MTP)}, MEASURED)
    path = catalogue.path(MODEL)
    plain = _load(path, threads, context)
    wanted = {"early_exit": f"{EARLY_EXIT}{EXIT_LAYER}"}
    with tempfile.TemporaryDirectory() as folder:
        seconds = {kind: _trained(kind, Path(folder), threads, context, steps) for kind in TRAINED}
        wanted |= {kind: str(Path(folder) / kind) for kind in TRAINED}
        models = {name: _drafting(plain, path, heads) for name, heads in wanted.items()}
    measured |= rows(plain, models, MEASURED)
    for kind in TRAINED:
        measured[kind]["training_seconds"] = seconds[kind]
    figures["learned_different_ids"] = sum(row["different_ids"] for row in measured.values())
    return figures | {f"learned_{name}": row for name, row in measured.items()}


def _load(path: Path, threads: int, context: int) -> LanguageModel:
    model = LanguageModel.load(
        path, threads=threads, context=context, cache=catalogue.converted(), drafters=()
    )
    model.warm_up()
    return model


def _trained(kind: Kind, folder: Path, threads: int, context: int, steps: int) -> float:
    """Train heads of this kind into the folder; the seconds that took."""
    prompts = folder / "prompts.txt"
    prompts.write_text("\n".join(TRAINING), encoding="utf-8")
    settings = Settings(llm=MODEL, llm_threads=threads, llm_context=context)
    done = train_heads(settings, kind, folder / kind, prompts=prompts, max_tokens=REPLY_TOKENS, steps=steps)
    taken: float = done["seconds"]
    return taken


def _drafting(plain: LanguageModel, path: Path, heads: str) -> LanguageModel:
    """The same weights and measured costs with these heads as their only drafter."""
    drafter = open_draft_heads(heads, path, plain.target)
    model = LanguageModel(plain.target, plain.tokenizer, drafters=(), heads=drafter)
    model.pass_costs = plain.pass_costs
    return model


def rows(
    plain: LanguageModel, models: Mapping[str, LanguageModel], prompts: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """A row for each of the models, which draft for `plain`, all taking turns."""
    players: dict[str, Player] = {name: Rejoinder(model) for name, model in models.items()}
    tally = single_turns({"plain": Rejoinder(plain), **players}, prompts, "learned drafters")
    return {name: _row(tally, name) for name in models}


def _row(tally: Tally, name: str) -> dict[str, Any]:
    stats = tally.stats(name)
    drafted = sum(s.drafted.total() for s in stats)
    accepted = sum(s.accepted.total() for s in stats)
    return {
        "over_plain": tally.rate(name) / tally.rate("plain"),
        "tokens_per_pass": tally.tokens_per_pass(name),
        "drafted": drafted,
        "accepted_share": accepted / drafted if drafted else None,
        "different_ids": sum(
            sum(a != b for a, b in zip(ours.ids, theirs.ids, strict=False))
            + abs(len(ours.ids) - len(theirs.ids))
            for ours, theirs in zip(tally.answers[name], tally.answers["plain"], strict=True)
        ),
    }
