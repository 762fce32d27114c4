"""The end of a turn: how long the caller waits for the decision, at a fixed rate of cutting callers off.

    python -m bench.endpoint --json [--quick]

Each pause of `bench.pauses` is heard once, as a call hears it: voice activity says where the voice ended,
and after the soft end the detector and the recogniser say what they make of the turn so far. A policy turns
that into the silence it requires. The share of hesitations that outlast it at a hold are false cut-offs: of
all holds, and of the clear ones, where the sentence could not have ended; at the end of a turn it is the
latency. Settings are swept, the best at 5 % and 10 % false cut-offs found on every other sentence and
reported on the rest. The baseline is voice activity alone with a fixed silence; beside it stands the
detector with a threshold.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

import numpy as np
from transformers.models.whisper.english_normalizer import EnglishTextNormalizer

from asr.end_of_turn import SmartTurn
from asr.recogniser import Recogniser
from asr.vad import SileroVad
from asr.whisper import Whisper
from bench.pauses import Pause, outlasting, pauses
from bench.questions import RATE, SPEAKERS
from bench.report import machine, show
from bench.utterances import INSTALL, recorded, spoken
from pipeline import catalogue
from pipeline.turn_policy import TurnPolicy, required_silence_ms

BUDGETS = (0.05, 0.10)
JUDGING_MS = 60.0  # from the soft end to the detector's and the recogniser's answers
TIMEOUT_MS = 3000.0  # of the detector used as it comes
GOALS = {"false_cutoff_rate": "<= 0.05", "latency_p50_ms": "<= 500"}


@dataclass(frozen=True, slots=True)
class Heard:
    """A pause as a call hears it. `early_ms`: how much too early voice activity puts the voice's end."""

    pause: Pause
    probability: float
    transcript: str
    early_ms: float


Requires = Callable[[Heard], float]
"""The silence in milliseconds, counted by voice activity, after which the turn is taken to be over."""


def hear(
    found: Iterable[Pause], vad: SileroVad, recogniser: Recogniser, detector: SmartTurn
) -> Iterator[Heard]:
    soft_end = TurnPolicy().soft_end_ms / 1000
    for pause in found:
        audio = pause.after(soft_end)
        utterance = recogniser.open()
        utterance.feed(audio)
        text = utterance.finish(lambda: False).text
        if not _ends_with_the_same_word(text, pause.said):
            continue  # a word was cut, or heard as another: not the pause that it was meant to be
        offsets = [frame.offset for frame in vad.open().push(audio) if frame.offset is not None]
        early = len(audio) - round(soft_end * RATE) - offsets[-1] if offsets else 0
        yield Heard(pause, detector.probability(audio), text, early / RATE * 1000)


def _ends_with_the_same_word(text: str, other: str) -> bool:
    plain = EnglishTextNormalizer({})
    return bool(plain(text).split()[-1:] == plain(other).split()[-1:])


@dataclass(frozen=True, slots=True)
class Outcome:
    """Shares of the hesitations that are cut off: of all, and where the sentence could not have ended.

    `latencies`: milliseconds from the true end of each turn.
    """

    all_cut: float
    clear_cut: float
    latencies: tuple[float, ...]

    @property
    def mean_ms(self) -> float:
        return float(np.mean(self.latencies))

    def as_dict(self) -> dict[str, float]:
        return {
            "false_cutoff_rate": round(self.clear_cut, 4),
            "false_cutoff_rate_all": round(self.all_cut, 4),
            "latency_mean_ms": round(self.mean_ms, 1),
            "latency_p50_ms": round(float(np.median(self.latencies)), 1),
            "latency_p95_ms": round(float(np.percentile(self.latencies, 95)), 1),
        }


def outcome(requires: Requires, heard: Sequence[Heard], *, judged: bool = True) -> Outcome:
    """What a policy does with these pauses; one that uses the judgement cannot decide before it is there."""
    earliest = TurnPolicy().soft_end_ms + JUDGING_MS if judged else 0.0
    decided = [(one.pause, max(requires(one), earliest) - one.early_ms) for one in heard]
    holds = [(pause.ambiguous, outlasting(at)) for pause, at in decided if pause.held]
    return Outcome(
        float(np.mean([cut for _, cut in holds])),
        float(np.mean([cut for ambiguous, cut in holds if not ambiguous])),
        tuple(at for pause, at in decided if not pause.held),
    )


def by_policy(policy: TurnPolicy) -> Requires:
    def requires(heard: Heard) -> float:
        return required_silence_ms(policy, probability=heard.probability, transcript=heard.transcript)

    return requires


def by_detector(threshold: float) -> Requires:
    return lambda heard: 0.0 if heard.probability >= threshold else TIMEOUT_MS


def by_silence(milliseconds: float) -> Requires:
    return lambda heard: milliseconds


def policies() -> Iterator[TurnPolicy]:
    grid = product(
        (240.0, 300.0, 400.0, 500.0, 600.0, 800.0, 1000.0),
        (800.0, 1000.0, 1200.0, 1400.0),
        (1200.0, 1600.0, 2000.0),
        (1200.0, 1600.0, 2000.0, 2400.0, 3000.0),
        (0.3, 0.5, 0.7, 0.9, 0.99),
    )
    for minimum, unsure, unfinished, maximum, sure in grid:
        if minimum <= unsure <= unfinished <= maximum:
            yield TurnPolicy(
                min_silence_ms=minimum,
                unsure_silence_ms=unsure,
                unfinished_silence_ms=unfinished,
                max_silence_ms=maximum,
                sure=sure,
            )


def best(outcomes: Iterable[tuple[Any, Outcome]], share: str, budget: float) -> Any:
    """The settings with the lowest mean latency whose share of false cut-offs is within the budget."""
    within = [
        (result.mean_ms, number, settings)
        for number, (settings, result) in enumerate(outcomes)
        if getattr(result, share) <= budget
    ]
    return min(within)[2] if within else None


def measure(*, quick: bool) -> dict[str, Any]:
    vad, detector = SileroVad(), SmartTurn(catalogue.path("smart-turn-v3.2"))
    model = catalogue.path("whisper-base")
    recogniser = Recogniser(model, vad=vad)
    utterances = [*recorded(), *(u for speaker in SPEAKERS for u in spoken(speaker))]
    if quick:
        utterances = utterances[::3]
    whisper = Whisper(model, threads=1, workers=1, compute_type="int8", language="en")
    heard = list(hear(pauses(whisper, utterances), vad, recogniser, detector))
    sentences = sorted({one.pause.sentence for one in heard})
    tuning = [one for one in heard if sentences.index(one.pause.sentence) % 2]
    test = [one for one in heard if not sentences.index(one.pause.sentence) % 2]
    return {
        **outcome(by_policy(TurnPolicy()), heard).as_dict(),
        **{
            f"{share}_{budget:.0%}": _at(share, budget, tuning, test)
            for share, budget in product(("all_cut", "clear_cut"), BUDGETS)
        },
        "detector_alone": outcome(by_detector(0.5), heard).as_dict(),
        "holds": sum(one.pause.held for one in heard),
        "holds_where_it_could_have_ended": sum(one.pause.ambiguous for one in heard),
        "ends": sum(not one.pause.held for one in heard),
        "voice_end_early_p50_ms": round(float(np.median([one.early_ms for one in heard])), 1),
        "note": "" if recorded() else INSTALL,
        **machine(),
    }


def _at(share: str, budget: float, tuning: Sequence[Heard], test: Sequence[Heard]) -> dict[str, Any]:
    everything = [*tuning, *test]
    fixed = [(ms, outcome(by_silence(ms), everything, judged=False)) for ms in np.arange(200.0, 3001.0, 20.0)]
    silence_ms = best(fixed, share, budget)
    policy = best(((p, outcome(by_policy(p), tuning)) for p in policies()), share, budget)
    return {
        "voice_activity_only_ms": None if silence_ms is None else float(silence_ms),
        "policy": None if policy is None else _settings(policy),
        "policy_tuning": None if policy is None else outcome(by_policy(policy), tuning).as_dict(),
        "policy_test": None if policy is None else outcome(by_policy(policy), test).as_dict(),
    }


def _settings(policy: TurnPolicy) -> dict[str, float]:
    return {field.name: getattr(policy, field.name) for field in fields(policy)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="a third of the sentences")
    arguments = parser.parse_args()
    figures = measure(quick=arguments.quick)
    show("The end of a turn, against voice activity alone", figures, as_json=arguments.json, goals=GOALS)


if __name__ == "__main__":
    main()
