"""Text to ids and back, from a GGUF file's vocabulary or a Hugging Face folder's tokenizer.json.

Special tokens are kept out of the model that encodes text: whatever a caller says, "<|im_start|>" in it
becomes ordinary characters. Only `encode_markup`, which the chat template alone uses, writes special ids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import tokenizers

from llm.thoughts import is_mark
from llm.vocabulary import TokenizerError, Vocabulary, end_ids, written_ids

_LAYOUT = 3
"""Of what is cached: other numbers belong to other releases."""


class Tokenizer:
    """Byte-level BPE (or any model tokenizers knows) with the special tokens kept apart. Thread-safe."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._bpe = tokenizers.Tokenizer.from_str(vocabulary.bpe)
        self._special = vocabulary.special
        written = {*vocabulary.written, *_thought_marks(vocabulary)}
        self._spelled = {
            token: name if token in written else "" for name, token in vocabulary.special.items()
        }
        names = sorted(vocabulary.special, key=len, reverse=True)
        self._markup = re.compile("|".join(map(re.escape, names))) if names else None
        self._byte_level = isinstance(self._bpe.decoder, tokenizers.decoders.ByteLevel)
        self.chat_template = vocabulary.chat_template
        self.bos, self.eos = vocabulary.bos, vocabulary.eos
        self.size = vocabulary.size
        self.ends = frozenset(vocabulary.ends)
        self.encode = lru_cache(maxsize=512)(self._encode)
        self.token_bytes = lru_cache(maxsize=None)(self._token_bytes)
        self.bare = lru_cache(maxsize=4096)(self._bare)

    @classmethod
    def load(cls, model: Path, cache: Path | None = None) -> Self:
        """The tokenizer of a GGUF file or of a Hugging Face folder.

        A GGUF vocabulary is converted once and kept in `cache` (None: beside the file). Raises
        `TokenizerError` where there is none or it is of an unknown kind.
        """
        if model.is_dir():
            try:
                return cls(_from_folder(model))
            except TokenizerError:
                raise
            except Exception as error:  # tokenizers raises plain ones
                raise TokenizerError(
                    f"the tokenizer in {model} cannot be read, it may be damaged: {error!r}. Fetch it again"
                ) from error
        beside = model.stat()
        converted = (
            cache or model.parent
        ) / f"{model.stem}-{beside.st_size}-{beside.st_mtime_ns}.{_LAYOUT}.vocabulary.json"
        if converted.exists():
            return cls(Vocabulary.load(converted))
        from llm.gguf_vocabulary import read_vocabulary

        vocabulary = read_vocabulary(model)
        vocabulary.save(converted)
        return cls(vocabulary)

    def _encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._bpe.encode(text, add_special_tokens=False).ids)

    def encode_markup(self, text: str) -> tuple[int, ...]:
        """Encode a piece of a chat template: special tokens by name, the rest as text."""
        if self._markup is None:
            return self.encode(text)
        ids: list[int] = []
        rest = 0
        for name in self._markup.finditer(text):
            ids += self.encode(text[rest : name.start()])
            ids.append(self._special[name.group()])
            rest = name.end()
        return (*ids, *self.encode(text[rest:]))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; none for those that stand for no bytes. Bytes that are not UTF-8 become U+FFFD."""
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", errors="replace")

    def _token_bytes(self, token: int) -> bytes:
        """The bytes a token stands for; none for ids outside the vocabulary and for special ids, but for
        those that are text."""
        if token in self._spelled:
            return self._spelled[token].replace("\u2581", " ").encode()
        piece = self._bpe.id_to_token(token)
        if piece is None:
            return b""
        if self._byte_level:
            table = _bytes_of_characters()
            return bytes(table[c] for c in piece if c in table)
        if re.fullmatch(r"<0x[0-9A-F]{2}>", piece):
            return bytes([int(piece[3:5], 16)])
        return piece.replace("\u2581", " ").encode()

    def _bare(self, token: int) -> int | None:
        """For a token like ".\\n" the one without the line break, "."; None for any other."""
        spelled = self.token_bytes(token)
        bare = spelled.rstrip(b"\n")
        if bare == spelled or not bare:
            return None
        ids = self.encode(bare.decode("utf-8", errors="ignore"))
        return ids[0] if len(ids) == 1 and self.token_bytes(ids[0]) == bare else None

    def piece(self, token: int) -> str | None:
        """The vocabulary's own spelling of an id, special or not; None outside it."""
        for name, known in self._special.items():
            if known == token:
                return name
        return self._bpe.id_to_token(token)

    def pieces(self) -> dict[int, str]:
        """Every id with its spelling, for comparing vocabularies."""
        spelled = {token: piece for piece, token in self._bpe.get_vocab().items()}
        return spelled | {token: name for name, token in self._special.items()}


@lru_cache(maxsize=1)
def _bytes_of_characters() -> dict[str, int]:
    """GPT-2's printable alphabet for bytes, backwards: what a byte-level vocabulary is spelled in."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [b for b in range(256) if b not in plain]
    return {chr(b): b for b in plain} | {chr(256 + i): b for i, b in enumerate(moved)}


def _from_folder(folder: Path) -> Vocabulary:
    source = folder / "tokenizer.json"
    if not source.exists():
        raise TokenizerError(f"{folder} has no tokenizer.json; save the model's fast tokenizer there")
    bpe = json.loads(source.read_bytes())  # which finds out the encoding
    added = bpe.get("added_tokens", ())
    special = {token["content"]: int(token["id"]) for token in added}
    plain = {int(token["id"]) for token in added if token.get("special", True) is False}
    bpe["added_tokens"] = []
    bpe["post_processor"] = None
    config = _json(folder / "tokenizer_config.json")
    bos, eos = (_named(config.get(key), special) for key in ("bos_token", "eos_token"))
    ends = end_ids(special, _declared_ends(folder, special, eos))
    template = config.get("chat_template")
    if isinstance(template, list):  # several for different purposes, by name
        template = {named["name"]: named["template"] for named in template}.get("default")
    jinja = folder / "chat_template.jinja"
    if jinja.exists():
        template = jinja.read_text(encoding="utf-8-sig")
    vocab = bpe["model"]["vocab"]
    ids = vocab.values() if isinstance(vocab, dict) else range(len(vocab))  # unigram's is a list
    size = 1 + max([*special.values(), *ids])
    return Vocabulary(
        json.dumps(bpe), special, ends, size, template, bos, eos, written_ids(special, plain, ends, bos)
    )


def _named(token: Any, special: dict[str, int]) -> str:
    """A special token of tokenizer_config.json, which has it as a string or with its properties."""
    name = token.get("content") if isinstance(token, dict) else token
    return name if name in special else ""


def _declared_ends(folder: Path, special: dict[str, int], eos: str) -> set[int]:
    ends: set[int] = set()
    for name in ("config.json", "generation_config.json"):
        declared = _json(folder / name).get("eos_token_id")
        ends.update(i for i in (declared if isinstance(declared, list) else [declared]) if i is not None)
    return ends | ({special[eos]} if eos else set())


def _json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_bytes()) if path.exists() else {}


def _thought_marks(vocabulary: Vocabulary) -> set[int]:
    """The special tokens by which thoughts are told from the answer: spelled, for they are read as text."""
    marks = {token for name, token in vocabulary.special.items() if is_mark(name)}
    return marks - set(vocabulary.ends)
