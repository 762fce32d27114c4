"""The end of a turn: how long the caller waits for the decision, at a fixed rate of cutting callers off.

    python -m bench.endpoint --json [--quick]

Each pause of `bench.pauses` is heard once, as a call hears it: voice activity says where the voice ended,
and after the soft end the detector and the recogniser say what they make of the turn so far. A policy
turns that into the silence it requires. The share of hesitations that outlast it at a hold are false
cut-offs: of all holds, and of the clear ones, where the sentence could not have ended; at the end of a
turn it is the latency. The default policy's constants were chosen with the pause set in view (`tuned`);
`unseen` is what they do with sentences by which nothing was chosen. Contestants, each with the settings
that are best on every other sentence of the pause set at 5 % and 10 % false cut-offs, and what these do on
the rest (`held_out`): voice activity alone with a fixed silence, the detector with a threshold and a
time-out, and the policy.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from asr.end_of_turn import SmartTurn
from asr.recogniser import Recogniser
from asr.vad import SileroVad
from asr.whisper import Whisper
from bench.pauses import Pause, outlasting, pauses
from bench.report import Goal, machine, report
from fixtures.recordings import LEFT_OUT
from fixtures.speech import RATE, SPEAKERS
from fixtures.unseen_utterances import UNSEEN_SENTENCES
from fixtures.utterances import SENTENCES, Spoken, recorded, spoken
from fixtures.words import plain
from pipeline.models import catalogue
from pipeline.turns.policy import TurnPolicy, required_silence_ms

BUDGETS = (0.05, 0.10)
ASKED_SECONDS = 0.096  # of silence, when voice activity has confirmed it: the detector is asked
JUDGING_MS = 60.0  # from the soft end to the detector's and the recogniser's answers
GOALS = (
    Goal("hesitations cut off, unseen sentences", "unseen.false_cutoff_rate", "<=", 0.10),
    Goal("milliseconds to the decision, unseen sentences", "unseen.latency_p50_ms", "<=", 350),
    Goal("hesitations cut off, the sentences tuned by", "tuned.false_cutoff_rate", "<=", 0.05),
    Goal("milliseconds to the decision, the sentences tuned by", "tuned.latency_p50_ms", "<=", 350),
)


@dataclass(frozen=True, slots=True)
class Heard:
    """A pause as a call hears it. `early_ms`: how much too early voice activity puts the voice's end."""

    pause: Pause
    probability: float
    transcript: str
    closing: float | None
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
        final = utterance.finish(lambda: False)
        if not _ends_with_the_same_word(final.text, pause.said):
            continue  # a word was cut, or heard as another: not the pause that it was meant to be
        offsets = [frame.offset for frame in vad.open().push(audio) if frame.offset is not None]
        early = len(audio) - round(soft_end * RATE) - offsets[-1] if offsets else 0
        probability = detector.probability(pause.after(ASKED_SECONDS))
        yield Heard(pause, probability, final.text, final.closing, early / RATE * 1000)


def _ends_with_the_same_word(text: str, other: str) -> bool:
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
    def p50_ms(self) -> float:
        return float(np.median(self.latencies))

    @property
    def mean_ms(self) -> float:
        return float(np.mean(self.latencies))

    def as_dict(self) -> dict[str, float]:
        return {
            "false_cutoff_rate": round(self.clear_cut, 4),
            "false_cutoff_rate_all": round(self.all_cut, 4),
            "latency_mean_ms": round(self.mean_ms, 1),
            "latency_p50_ms": round(self.p50_ms, 1),
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
        return required_silence_ms(
            policy, probability=heard.probability, transcript=heard.transcript, closing=heard.closing
        )

    return requires


def by_detector(threshold: float, timeout: float) -> Requires:
    return lambda heard: 0.0 if heard.probability >= threshold else timeout


def by_silence(milliseconds: float) -> Requires:
    return lambda heard: milliseconds


def detectors() -> Iterator[tuple[str, Requires]]:
    for threshold, timeout in product((0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98), np.arange(400.0, 3001.0, 100.0)):
        yield f"{timeout:.0f} ms below {threshold}", by_detector(threshold, float(timeout))


def silences() -> Iterator[tuple[str, Requires]]:
    for milliseconds in np.arange(200.0, 3001.0, 20.0):
        yield f"{milliseconds:.0f} ms", by_silence(float(milliseconds))


GRID = {
    "min_silence_ms": (280.0, 340.0, 400.0),
    "unsure_silence_ms": (1200.0, 1600.0, 2000.0),
    "max_silence_ms": (2500.0, 3000.0),
    "sure": (0.5, 0.7, 0.9),
    "sure_closing": (0.7, 0.8, 0.85, 0.9, 0.95),
    "detector_share": (0.0, 0.15, 0.3, 0.5),
}


def policies() -> Iterator[tuple[str, Requires]]:
    """The policy over a grid of its settings, each named by what differs from the defaults."""
    defaults = vars(TurnPolicy())
    for values in product(*GRID.values()):
        changed = {name: value for name, value in zip(GRID, values, strict=True) if value != defaults[name]}
        yield (
            ", ".join(f"{name} {value:g}" for name, value in changed.items()) or "defaults",
            by_policy(TurnPolicy(**changed)),
        )


CONTESTANTS: dict[str, tuple[Callable[[], Iterator[tuple[str, Requires]]], bool]] = {
    "voice_activity": (silences, False),
    "detector": (detectors, True),
    "policy": (policies, True),
}
"""Each with its settings, and whether it uses the judgement."""


def at_budget(contestant: str, budget: float, tuning: Sequence[Heard], held_out: Sequence[Heard]) -> Any:
    """The settings with the lowest latency whose share of false cut-offs on the tuning sentences is within
    the budget, and what they do with the rest; None where there are none."""
    settings, judged = CONTESTANTS[contestant]
    tried = [(name, requires, outcome(requires, tuning, judged=judged)) for name, requires in settings()]
    within = [one for one in tried if one[2].clear_cut <= budget]
    if not within:
        return None
    name, requires, tuned = min(within, key=lambda one: (one[2].p50_ms, one[2].mean_ms))
    return {
        "settings": name,
        "tuning": tuned.as_dict(),
        "held_out": outcome(requires, held_out, judged=judged).as_dict(),
    }


def pause_set(*, quick: bool = False) -> list[Heard]:
    """The pauses of the recordings and of the sentences in each voice; `quick`: of every third."""
    return _heard([*recorded(), *in_each_voice(SENTENCES)], quick=quick)


def unseen_set(*, quick: bool = False) -> list[Heard]:
    """The pauses of the sentences by which nothing was chosen, in each voice; `quick`: of every third."""
    return _heard(in_each_voice(UNSEEN_SENTENCES), quick=quick)


def in_each_voice(sentences: tuple[str, ...]) -> list[Spoken]:
    return [utterance for speaker in SPEAKERS for utterance in spoken(speaker, sentences)]


def _heard(utterances: Sequence[Spoken], *, quick: bool) -> list[Heard]:
    vad, detector = SileroVad(), SmartTurn(catalogue.path("smart-turn-v3.2"))
    model = catalogue.path("whisper-base")
    whisper = Whisper(model, threads=1, workers=1, compute_type="int8", language="en")
    found = pauses(whisper, utterances[::3] if quick else utterances)
    return list(hear(found, vad, Recogniser(model, vad=vad), detector))


def default_policy(*, quick: bool = False) -> dict[str, Outcome]:
    """What calls do with the pause set (`tuned`) and with sentences by which nothing was chosen (`unseen`):
    `clear_cut` is the rate of false cut-offs that goes with their latency."""
    requires = by_policy(TurnPolicy())
    return {
        "tuned": outcome(requires, pause_set(quick=quick)),
        "unseen": outcome(requires, unseen_set(quick=quick)),
    }


def measure(*, quick: bool) -> dict[str, Any]:
    heard = pause_set(quick=quick)
    sentences = sorted({one.pause.sentence for one in heard})
    tuning = [one for one in heard if sentences.index(one.pause.sentence) % 2]
    held_out = [one for one in heard if not sentences.index(one.pause.sentence) % 2]
    unseen = unseen_set(quick=quick)
    default = by_policy(TurnPolicy())
    return {
        "tuned": outcome(default, heard).as_dict(),
        "unseen": outcome(default, unseen).as_dict(),
        **{
            f"{contestant}_at_{budget:.0%}": at_budget(contestant, budget, tuning, held_out)
            for contestant, budget in product(CONTESTANTS, BUDGETS)
        },
        "holds": sum(one.pause.held for one in heard),
        "holds_where_it_could_have_ended": sum(one.pause.ambiguous for one in heard),
        "ends": sum(not one.pause.held for one in heard),
        "voice_end_early_p50_ms": round(float(np.median([one.early_ms for one in heard])), 1),
        "note": "" if recorded() else LEFT_OUT,
        **machine(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="a third of the sentences")
    arguments = parser.parse_args()
    figures = measure(quick=arguments.quick)
    sys.exit(
        report("The end of a turn, against voice activity alone", figures, GOALS, as_json=arguments.json)
    )


if __name__ == "__main__":
    main()
