"""Whole calls in real time, with drafting behind the commit gate and without it, question by question in
turn.

    python -m bench.calls --json [--quick]

Real models, recorded questions, one caller. Every reply is afterwards made again by a fresh conversation
without any drafter, from the same messages: `reply_differs` counts those whose token ids are not the same.
`false_cutoff_rate`: of the hesitations in `bench.endpoint`, those that the same end-of-turn policy cuts off.
`unseen`: agents, questions, sentences, interruptions and murmurs by which nothing was chosen.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import soundfile

from bench import barge_in, endpoint
from bench.caller import Caller, with_call
from bench.progress import Progress
from bench.report import Goal, machine, percentile, report, spread
from fixtures.grading import Question
from fixtures.questions import QUESTIONS, record
from fixtures.unseen_agents import UNSEEN_AGENTS
from fixtures.words import word_error_rate
from llm.language_model import Finished, LanguageModel, Message, Sampling
from pipeline.agent import choose_agent
from pipeline.audio import Audio
from pipeline.config import load
from pipeline.large_pages import start_with_large_pages
from pipeline.models import catalogue
from pipeline.service import Service
from pipeline.stages import Stages
from pipeline.telemetry.timeline import DURATIONS, MARKS

QUESTIONS_A_CALL = 6
UNSEEN_A_CALL = 8
"""Of the fifteen questions to each unseen agent, in its one call."""
GOALS = (
    Goal("milliseconds from commit to audio, median", "after_commit_p50_ms", "<=", 150),
    Goal("milliseconds from commit to audio, p95", "after_commit_p95_ms", "<=", 600),
    Goal("voice to voice, share of that without drafting", "speculation_ratio", "<=", 0.6),
    Goal("milliseconds voice to voice", "voice_to_voice_p50_ms", "<=", 750),
    Goal("milliseconds voice to voice, unseen agents", "unseen.voice_to_voice_p50_ms", "<=", 900),
    Goal("answers right", "with_drafts.answers_right", ">=", 0.9),
    Goal("answers right, unseen agents", "unseen.answers_right", ">=", 0.8),
    Goal("hesitations cut off", "false_cutoff_rate.tuned", "<=", 0.05),
    Goal("hesitations cut off, unseen sentences", "false_cutoff_rate.unseen", "<=", 0.10),
    Goal("replies that differ from plain ones", "reply_differs", "==", 0),
    Goal("milliseconds to silence, p95", "over_the_agent.tuned.barge_in_p95_ms", "<=", 200),
    Goal("the same, unseen interruptions", "over_the_agent.unseen.barge_in_p95_ms", "<=", 200),
    Goal("murmurs of 20 that stopped", "over_the_agent.tuned.backchannels_that_stopped", "<=", 1),
    Goal("unseen murmurs of 20 that stopped", "over_the_agent.unseen.backchannels_that_stopped", "<=", 4),
    Goal("heard text within a word", "over_the_agent.tuned.heard_text_within_a_word", ">=", 0.95),
    Goal("the same, unseen interruptions", "over_the_agent.unseen.heard_text_within_a_word", ">=", 0.95),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One question put to a call, and the records of its turns; the last one is the answer's."""

    question: Question
    records: list[dict[str, Any]]

    @property
    def record(self) -> dict[str, Any]:
        return self.records[-1]

    @property
    def heard(self) -> str:
        """The question as it was heard, in however many turns."""
        return " ".join(record["caller_text"] for record in self.records)


async def ask_all(
    service: Service,
    questions: Sequence[tuple[Question, Audio]],
    progress: Progress,
    agent: str | None = None,
) -> tuple[list[Asked], list[Message]]:
    """Put the questions to one call, one after the other. Also returns the call's memory at its end."""
    caller = Caller()
    asked: list[Asked] = []

    async def talk() -> None:
        await caller.greeting_over()
        for question, audio in questions:
            asked.append(Asked(question, await caller.ask(audio)))
            progress.step()

    with service.line(caller, agent=agent, origin="bench") as call:
        await with_call(call, caller, talk)
    return asked, call.dialogue.messages()


def forgetful(stages: Stages) -> LanguageModel:
    """The same weights with empty memories: what one contestant's replies teach must not help the other."""
    shared = stages.language
    assert isinstance(shared, LanguageModel)
    model = LanguageModel(shared.target, shared.tokenizer)
    model.pass_costs = shared.pass_costs
    return model


def figures_of(asked: list[Asked]) -> dict[str, Any]:
    """Latencies, transcripts and answers of one contestant."""
    rows = [a.record for a in asked]
    durations = {
        name: spread([row["durations"][name] for row in rows if name in row["durations"]])
        for name in DURATIONS
    }
    marks = {
        name: percentile([row["marks"][name] for row in rows if name in row["marks"]], 50) for name in MARKS
    }
    wrong = [a for a in asked if not a.question.is_right(a.record["reply_text"])]
    fates = [row["draft_fate"] for row in rows]
    return {
        "turns": len(rows),
        "durations": durations,
        "waterfall_p50": {name: value for name, value in marks.items() if value is not None},
        "wer": round(word_error_rate([a.question.text for a in asked], [a.heard for a in asked]), 4),
        "answers_right": round(1 - len(wrong) / len(asked), 3),
        "wrong": [f"{a.heard} -> {a.record['reply_text']}" for a in wrong],
        "questions_cut_off": sum(len(a.records) > 1 for a in asked),
        "draft_fates": {fate: fates.count(fate) for fate in ("whole", "part", "none", "wasted")},
        "tokens_wasted": sum(row["extra"]["wasted_tokens"] for row in rows),
        "tokens_per_pass": round(median(row["tokens_per_pass"] for row in rows), 2),
    }


def differing_replies(
    service: Service, dialogues: list[list[Message]], sampling: Sampling
) -> tuple[int, int]:
    """(replies whose ids a plain, fresh conversation does not give, replies compared)."""
    shared = service.stages.language
    assert isinstance(shared, LanguageModel)
    plain = LanguageModel(shared.target, shared.tokenizer, drafters=())
    differing = compared = 0
    for messages in dialogues:
        for at, message in enumerate(messages):
            if message.ids is None:
                continue
            conversation = plain.open()
            *_, end = conversation.reply(messages[:at], sampling, cancelled=lambda: False)
            assert isinstance(end, Finished)
            differing += end.ids != message.ids
            compared += 1
            conversation.close()
    return differing, compared


async def unseen_figures(service: Service, *, quick: bool) -> tuple[dict[str, Any], list[list[Message]]]:
    """Calls to agents that nothing was developed with. Also returns their dialogues."""
    asked: list[Asked] = []
    dialogues: list[list[Message]] = []
    a_call = 2 if quick else UNSEEN_A_CALL
    progress = Progress("unseen questions", a_call * len(UNSEEN_AGENTS))
    for agent, questions in UNSEEN_AGENTS:
        answered, dialogue = await ask_all(service, spoken(questions[:a_call]), progress, agent.name)
        asked += answered
        dialogues.append(dialogue)
    figures = figures_of(asked)
    return {"voice_to_voice_p50_ms": figures["durations"]["voice_to_voice"]["p50"], **figures}, dialogues


def spoken(questions: Sequence[Question]) -> list[tuple[Question, Audio]]:
    """Questions with their audio; it is made once and kept."""
    paths = record(catalogue.cache() / "bench" / "questions", questions)
    return [
        (question, soundfile.read(path, dtype="float32")[0])
        for question, path in zip(questions, paths, strict=True)
    ]


def write_agents(folder: Path) -> None:
    """The unseen agents as files, for a service to load. They are sampled as the default agent is."""
    for agent, _ in UNSEEN_AGENTS:
        values = agent.model_dump(include={"greeting", "persona", "facts", "rules"})
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in values.items()]
        (folder / f"{agent.name}.toml").write_text("".join(lines), encoding="utf-8")


async def measure(*, quick: bool) -> dict[str, Any]:
    """Run the benchmark; every figure of its report by name."""
    questions = spoken(QUESTIONS[:6] if quick else QUESTIONS)
    progress = Progress("questions", 2 * len(questions))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_agents(folder)
        service = await Service.start(load({"latency_log": folder / "latency.db", "agents_dir": folder}))
        stages = service.stages
        asked: dict[bool, list[Asked]] = {True: [], False: []}
        dialogues: list[list[Message]] = []
        for start in range(0, len(questions), QUESTIONS_A_CALL):
            batch = questions[start : start + QUESTIONS_A_CALL]
            first = start // QUESTIONS_A_CALL % 2 == 0
            for speculate in (first, not first):
                service.stages = replace(stages, speculate=speculate, language=forgetful(stages))
                answered, dialogue = await ask_all(service, batch, progress)
                asked[speculate] += answered
                if speculate:
                    dialogues.append(dialogue)
        service.stages = stages
        unseen, unseen_dialogues = await unseen_figures(service, quick=quick)
        print("comparing replies with plain ones", file=sys.stderr)
        sampling = Sampling(**choose_agent(service.settings.agent).sampling.model_dump())
        differing, compared = await asyncio.to_thread(
            differing_replies, service, dialogues + unseen_dialogues, sampling
        )
        print("interrupting answers", file=sys.stderr)
        over_the_agent = await barge_in.measure(service, [audio for _, audio in questions], quick=quick)
        await service.close()
    print("hearing pauses", file=sys.stderr)
    policy = endpoint.default_policy(quick=quick)
    with_drafts, without = figures_of(asked[True]), figures_of(asked[False])
    fast, slow = with_drafts["durations"], without["durations"]
    return {
        **machine(),
        "questions": len(questions),
        "after_commit_p50_ms": fast["after_commit"]["p50"],
        "after_commit_p95_ms": fast["after_commit"]["p95"],
        "voice_to_voice_p50_ms": fast["voice_to_voice"]["p50"],
        "voice_to_voice_p95_ms": fast["voice_to_voice"]["p95"],
        "speculation_ratio": round(fast["voice_to_voice"]["p50"] / slow["voice_to_voice"]["p50"], 3),
        "false_cutoff_rate": {name: round(each.clear_cut, 4) for name, each in policy.items()},
        "reply_differs": differing,
        "replies_compared": compared,
        "over_the_agent": over_the_agent,
        "with_drafts": with_drafts,
        "without_drafts": without,
        "unseen": unseen,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="6 questions, few interruptions")
    arguments = parser.parse_args()
    start_with_large_pages()
    logging.basicConfig(level=logging.WARNING)
    np.seterr(all="ignore")
    figures = asyncio.run(measure(quick=arguments.quick))
    sys.exit(report("Whole calls in real time", figures, GOALS, as_json=arguments.json))


if __name__ == "__main__":
    main()
