"""How near the engine's logits are to float32 of the same file, and whether its rows keep their bits.

    python -m bench.llm_fidelity [--model small] [--threads 2] [--json]

`kl` is the mean Kullback-Leibler divergence of the engine's distribution from the float32 one, in nats, over
at least a thousand tokens of telephone talk; `top1` the share of positions whose best token is the same;
`different_bits` the number of rows that differ in any bit when the text is read in random blocks of 1 to 16.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.llm_passes import MODELS
from llm.checkpoints import read_checkpoint
from llm.targets.base import Cache, Target
from llm.targets.float_target import FloatTarget
from llm.targets.load import load_target
from llm.tokenizer import Tokenizer
from pipeline.models.catalogue import path

SEGMENT = 64
TOKENS = 1024

PERSONA = (
    "You answer the telephone for {name}. We are open Monday to Friday from {opens} to {closes}. "
    "We are closed on bank holidays. We do not take walk-ins. {price} Appointments can be cancelled free of "
    "charge up to twenty-four hours before. Later than that costs fifteen pounds. Parking is in the yard. "
    "The entrance is at {street}. Answer from the facts, in one short sentence. If the facts do not say, "
    "offer to take a message."
)
PLACES = (
    ("Elm Dental", "eight", "six", "A check-up costs sixty pounds.", "twelve Elm Street"),
    ("Harbour Physiotherapy", "nine", "seven", "A first visit costs eighty pounds.", "three Quay Lane"),
    (
        "Miller's Bicycles",
        "ten",
        "half past five",
        "A full service costs forty-five pounds.",
        "ninety High Road",
    ),
)
TALK = (
    ("Hello, are you open on Saturday?", "We are open Monday to Friday, so not on Saturdays."),
    ("And when do you close today?", "We close at {closes} today."),
    ("How much does it cost?", "{price}"),
    ("Can I just come by?", "We do not take walk-ins, but I can take a message to arrange an appointment."),
    ("What if I need to cancel?", "You can cancel free of charge up to twenty-four hours before."),
    ("Where exactly are you?", "The entrance is at {street}, and parking is in the yard."),
    (
        "My number is oh seven seven, nine hundred, one two three.",
        "Oh seven seven, nine hundred, one two three.",
    ),
    ("Do you speak Polish?", "I am not sure about that, but I can take a message."),
)


def telephone_talk() -> str:
    """The made-up calls as chat markup."""
    parts = []
    for name, opens, closes, price, street in PLACES:
        facts = {"name": name, "opens": opens, "closes": closes, "price": price, "street": street}
        parts.append(_turn("system", PERSONA.format(**facts)))
        for question, answer in TALK:
            parts.append(_turn("user", question))
            parts.append(_turn("assistant", answer.format(**facts)))
    return "".join(parts)


def bench_fidelity(model: Path, *, threads: int = 2, tokens: int = TOKENS) -> dict[str, Any]:
    """`kl`, `top1`, `different_bits`, `rows` (compared for bits) and `tokens` (the others')."""
    text = list(Tokenizer.load(model).encode_markup(telephone_talk()))
    ids = (text * (1 + tokens // len(text)))[:tokens]
    target = load_target(model, threads=threads, context=tokens)
    reference = FloatTarget(read_checkpoint(model), context=tokens, threads=threads)
    return {"model": target.name} | compare(target, reference, ids, threads)


def compare(target: Target, reference: Target, ids: list[int], threads: int) -> dict[str, Any]:
    """Segment by segment: each is read whole, again in random blocks, and by the reference."""
    ours, again, exact = target.open(), target.open(), reference.open()
    divergences, agreements, different = [], 0, 0
    random = np.random.default_rng(0)
    start_time = time.perf_counter()
    for start in range(0, len(ids), SEGMENT):
        segment = ids[start : start + SEGMENT]
        logits, expected = ours.extend(segment, len(segment)), exact.extend(segment, len(segment))
        divergences.append(divergence(expected, logits))
        agreements += int((logits.argmax(axis=1) == expected.argmax(axis=1)).sum())
        different += _different_rows(again, segment, logits, target, random, threads)
    return {
        "kl": float(np.concatenate(divergences).mean()),
        "top1": agreements / len(ids),
        "tokens": len(ids),
        "different_bits": different,
        "rows": len(ids),
        "seconds": time.perf_counter() - start_time,
    }


def divergence(expected: npt.NDArray[np.float32], logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """KL(expected || logits) of each row, in nats."""
    p, q = _log_softmax(expected), _log_softmax(logits)
    result: npt.NDArray[np.float64] = (np.exp(p) * (p - q)).sum(axis=1)
    return result


def _log_softmax(logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    result: npt.NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return result


def _different_rows(
    cache: Cache,
    segment: list[int],
    expected: npt.NDArray[np.float32],
    target: Target,
    random: np.random.Generator,
    threads: int,
) -> int:
    """Reads the segment in random blocks of 1 to 16 rows on 1 to `threads` threads."""
    different, start = 0, 0
    while start < len(segment):
        block = segment[start : start + int(random.integers(1, 17))]
        target.threads = int(random.integers(1, threads + 1))
        logits = cache.extend(block, len(block))
        different += int((logits != expected[start : start + len(block)]).any(axis=1).sum())
        start += len(block)
    target.threads = threads
    return different


def _turn(role: str, text: str) -> str:
    return f"<|im_start|>{role}\n{text}<|im_end|>\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model", choices=MODELS, default="default")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=TOKENS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result = bench_fidelity(path(MODELS[options.model]), threads=options.threads, tokens=options.tokens)
    if options.json:
        print(json.dumps(result))
        return
    print(f"{result['model']}: {result['tokens']} tokens against float32 of the same file")
    print(f"  kl {result['kl']:.5f} nats  top1 {result['top1']:.3f}", end="  ")
    print(f"rows with different bits {result['different_bits']} of {result['rows']}")


if __name__ == "__main__":
    main()
