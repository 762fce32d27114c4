"""Sentence boundaries in a stream, beside the segmenters a user would pick: ``python -m bench.sentences``.

Every contestant reads two tables by character: the one by which our rules were made (``tuned``,
:mod:`fixtures.sentence_cases`) and its unseen twin (:mod:`fixtures.unseen_sentence_cases`). One made for
streams is used as its documentation says. One made for whole texts is asked again with every character, and
all sentences but the last are taken, which is how voice frameworks use it. The peers are optional::

    pip install 'rejoinder[bench]'
"""

import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module, metadata
from typing import Annotated, Any

import typer

from bench.report import Goal, machine, report
from fixtures.sentence_cases import Case, cases
from fixtures.unseen_sentence_cases import unseen_cases
from llm.sentences import SentencePolicy, SentenceStream

Splitter = Callable[[Iterable[str]], Iterator[str]]
"""From pieces of a text to its sentences, each handed over as soon as the segmenter has it."""

GOALS = (
    Goal("boundary F1, unseen texts", "unseen.rejoinder.boundary_f1", ">=", 0.95),
    Goal("boundary F1 beyond the best peer's, unseen texts", "f1_over_best_peer", ">=", 0.05),
    Goal("characters waited for at most, unseen texts", "unseen.rejoinder.waited_chars_max", "<=", 1),
    Goal("boundary F1, the texts tuned by", "tuned.rejoinder.boundary_f1", ">=", 0.999),
)
_TOKEN_CHARS = 4
_SPEED_CHARS = 4_000
_SPEED_RUNS = 3


def ours(policy: SentencePolicy) -> Splitter:
    """The sentence stream of this project."""

    def split(pieces: Iterable[str]) -> Iterator[str]:
        stream = SentenceStream(policy)
        for piece in pieces:
            yield from stream.push(piece)
        yield from stream.flush()

    return split


def asked_again(segment: Callable[[str], list[str]]) -> Splitter:
    """A segmenter of whole texts, used on a stream: all it finds but the last sentence is final."""

    def split(pieces: Iterable[str]) -> Iterator[str]:
        rest = ""
        for piece in pieces:
            rest += piece
            *done, _ = segment(rest) or [""]
            for sentence in done:
                yield sentence
                rest = rest[rest.index(sentence.strip()) + len(sentence.strip()) :].lstrip()
        yield from segment(rest)

    return split


def _sentencex() -> Splitter:
    module: Any = import_module("sentencex")
    return asked_again(lambda text: list(module.segment("en", text)))


def _pysbd() -> Splitter:
    module: Any = import_module("pysbd")
    segmenter = module.Segmenter(language="en", clean=False)
    return asked_again(segmenter.segment)


def _stream2sentence() -> Splitter:
    module: Any = import_module("stream2sentence")

    def split(pieces: Iterable[str]) -> Iterator[str]:
        yield from module.generate_sentences(
            iter(pieces), minimum_sentence_length=1, minimum_first_fragment_length=1
        )

    return split


_PEERS: dict[str, Callable[[], Splitter]] = {
    "sentencex": _sentencex,
    "pysbd": _pysbd,
    "stream2sentence": _stream2sentence,
}


def contestants() -> tuple[dict[str, Splitter], list[str]]:
    """The segmenters at hand by name and version, and the peers that are not installed."""
    present = {
        "rejoinder": ours(SentencePolicy()),
        "rejoinder, first at once": ours(SentencePolicy(first_at_once=True)),
    }
    missing = []
    for name, load in _PEERS.items():
        try:
            present[f"{name} {metadata.version(name)}"] = load()
        except (ImportError, metadata.PackageNotFoundError):
            missing.append(name)
    return present, missing


def emissions(split: Splitter, text: str) -> Iterator[tuple[int, int]]:
    """For each sentence of ``text`` read by character: where it ends, and how much was read when it came."""
    read = 0

    def characters() -> Iterator[str]:
        nonlocal read
        for character in text:
            read += 1
            yield character

    place = 0
    for sentence in split(characters()):
        bare = sentence.strip()
        found = text.find(bare, place) if bare else -1
        if found >= 0:
            place = found + len(bare)
            yield place, read


def score(split: Splitter, table: list[Case]) -> dict[str, float]:
    """Boundary F1, wrong cuts, and the characters waited for behind true boundaries, spaces not counted."""
    right = wrong = missed = 0
    waits = []
    for case in table:
        true = {len(case.text[:end].rstrip()) for end in case.ends}
        last = len(case.text.rstrip())
        found = {place: read for place, read in emissions(split, case.text) if place < last}
        right += len(true & found.keys())
        wrong += len(found.keys() - true)
        missed += len(true - found.keys())
        waits += [len("".join(case.text[place : found[place]].split())) for place in true & found.keys()]
    return {
        "boundary_f1": round(2 * right / (2 * right + wrong + missed), 4),
        "wrong_cuts": wrong,
        "missed": missed,
        "waited_chars_mean": round(statistics.mean(waits), 2),
        "waited_chars_max": max(waits),
    }


def speeds(splitters: dict[str, Splitter], table: list[Case]) -> dict[str, int]:
    """Characters a second on a reply that arrives in token-sized pieces: medians, all alternating."""
    prose = [case.text for case in table if case.text.isascii() and "```" not in case.text]
    text = " ".join(prose)[:_SPEED_CHARS]
    pieces = [text[at : at + _TOKEN_CHARS] for at in range(0, len(text), _TOKEN_CHARS)]
    rates: dict[str, list[float]] = {name: [] for name in splitters}
    for _ in range(_SPEED_RUNS):
        for name, split in splitters.items():
            began = time.perf_counter()
            for _sentence in split(pieces):
                pass
            rates[name].append(len(text) / (time.perf_counter() - began))
    return {name: round(statistics.median(measured)) for name, measured in rates.items()}


def measure() -> dict[str, Any]:
    """The whole comparison: a row for each table and segmenter."""
    tables = {"tuned": cases(), "unseen": unseen_cases()}
    splitters, missing = contestants()
    figures: dict[str, Any] = {
        name: {contestant: score(split, table) for contestant, split in splitters.items()}
        for name, table in tables.items()
    }
    unseen = figures["unseen"]
    peers = [row["boundary_f1"] for name, row in unseen.items() if not name.startswith("rejoinder")]
    best = max(peers, default=None)
    return {
        **figures,
        "chars_per_second": speeds(splitters, tables["tuned"]),
        "f1_over_best_peer": None if best is None else round(unseen["rejoinder"]["boundary_f1"] - best, 4),
        "texts": {name: len(table) for name, table in tables.items()},
        "boundaries": {name: sum(len(case.ends) for case in table) for name, table in tables.items()},
        "not_installed": missing,
        **machine(),
    }


def main(as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False) -> None:
    """Compare sentence boundary finders on two tables of texts."""
    figures = measure()
    missing = figures["not_installed"]
    left_out = [f"pip install {' '.join(missing)}"] if missing else []
    sys.exit(report("Sentence boundaries", figures, GOALS, as_json=as_json, left_out=left_out))


if __name__ == "__main__":
    typer.run(main)
