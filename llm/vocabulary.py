"""What a tokenizer is made of, whatever file it came from, as it is cached."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

_END_NAMES = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "</s>",
    "<end_of_turn>",
    "<eos>",
)


class TokenizerError(ValueError):
    """A vocabulary that cannot be read, or is of a kind this reader does not know."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a tokenizer needs, as it is cached: `bpe` is the text of a tokenizer.json without added tokens.

    `bos` and `eos` are the special tokens that a chat template calls `bos_token` and `eos_token`, by name;
    empty where there are none. `written`: those of the special ones that stand for their own spelling.
    """

    bpe: str
    special: dict[str, int]
    ends: tuple[int, ...]
    size: int
    chat_template: str | None
    bos: str = ""
    eos: str = ""
    written: tuple[int, ...] = ()

    def save(self, path: Path) -> None:
        """Write it whole or not at all, also where another process does the same."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        part.write_text(json.dumps(asdict(self), ensure_ascii=False), encoding="utf-8")
        part.replace(path)

    @classmethod
    def load(cls, path: Path) -> Self:
        stored = json.loads(path.read_text(encoding="utf-8"))
        return cls(**{**stored, "ends": tuple(stored["ends"]), "written": tuple(stored["written"])})


def end_ids(special: dict[str, int], declared: set[int]) -> tuple[int, ...]:
    """The ids that end a reply: those declared and every well-known one that the vocabulary has."""
    return tuple(sorted(declared | {special[name] for name in _END_NAMES if name in special}))


def written_ids(special: dict[str, int], plain: set[int], ends: tuple[int, ...], bos: str) -> tuple[int, ...]:
    """Those of the added tokens that are text in a reply: of the ones declared not special (`plain`), such as
    Gemma's runs of line breaks, all but Qwen's `<|file_sep|>` and its like, which nobody means to say."""
    markup = {token for name, token in special.items() if name == bos or re.fullmatch(r"<\|.*\|>", name)}
    return tuple(sorted(plain - markup - set(ends)))
