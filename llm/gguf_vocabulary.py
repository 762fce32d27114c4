"""A GGUF file's vocabulary as a byte-level BPE of Hugging Face tokenizers: converted once, then cached."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gguf import GGUFReader, ReaderField
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
from tokenizers import decoders as token_decoders

from llm.vocabulary import TokenizerError, Vocabulary, end_ids, written_ids

_CONTROL, _USER_DEFINED, _UNUSED = 3, 4, 5  # gguf.TokenType

# The words a text is cut into before merging, by the name the file gives its pre-tokenizer.
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_QWEN2 = _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA3 = _QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")


def read_vocabulary(path: Path) -> Vocabulary:
    """Read the vocabulary, merges, special tokens and chat template of a GGUF file.

    Raises `TokenizerError` for a broken file and for a vocabulary that is not byte-level BPE or whose words
    are cut by unknown rules.
    """
    if path.exists() and not path.is_file():
        raise TokenizerError(f"{path} is a pipe or a device, not a GGUF file")
    try:
        fields = GGUFReader(path).fields
    except (ValueError, IndexError, KeyError) as error:
        raise TokenizerError(
            f"{path.name} cannot be read as GGUF, it may be cut short: {error}. Fetch it again"
        ) from error
    try:
        return _vocabulary(fields, path.name)
    except TokenizerError:
        raise
    except Exception as error:  # tokenizers raises plain ones
        raise TokenizerError(
            f"the vocabulary in {path.name} does not fit together, it may be damaged: {error!r}. "
            "Fetch it again"
        ) from error


def _vocabulary(fields: Mapping[str, ReaderField], file: str) -> Vocabulary:
    def value(name: str, default: Any = None) -> Any:
        return fields[name].contents() if name in fields else default

    kind = value("tokenizer.ggml.model")
    if kind != "gpt2":
        raise TokenizerError(
            f"{file} has a {kind!r} vocabulary; only byte-level BPE ('gpt2') is read from GGUF. "
            "Use the model's Hugging Face folder with its tokenizer.json instead"
        )
    pieces: list[str] = value("tokenizer.ggml.tokens")
    types: list[int] = value("tokenizer.ggml.token_type", [1] * len(pieces))
    apart = {_CONTROL, _USER_DEFINED, _UNUSED}
    vocab = {piece: i for i, piece in enumerate(pieces) if types[i] not in apart}
    special = {piece: i for i, piece in enumerate(pieces) if types[i] in (_CONTROL, _USER_DEFINED)}
    merges = [tuple(pair.split(" ")) for pair in value("tokenizer.ggml.merges")]
    bpe = Tokenizer(models.BPE(vocab=vocab, merges=merges, fuse_unk=False, byte_fallback=False))
    _cut_words(bpe, value("tokenizer.ggml.pre", "default"), file)
    bpe.decoder = token_decoders.ByteLevel()
    names = {i: piece for piece, i in special.items()}
    bos, eos, eot = (value(f"tokenizer.ggml.{role}_token_id") for role in ("bos", "eos", "eot"))
    ends = end_ids(special, {i for i in (eos, eot) if i is not None})
    plain = {i for i in special.values() if types[i] == _USER_DEFINED}
    template = value("tokenizer.chat_template")
    begin, end = names.get(bos, ""), names.get(eos, "")
    written = written_ids(special, plain, ends, begin)
    return Vocabulary(bpe.to_str(), special, ends, len(pieces), template, begin, end, written)


def _cut_words(bpe: Tokenizer, rule: str, file: str) -> None:
    split = {"qwen2": _QWEN2, "deepseek-r1-qwen": _QWEN2, "llama-bpe": _LLAMA3, "llama3": _LLAMA3}.get(rule)
    if split is not None:
        bpe.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(split), behavior="isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
        if rule == "qwen2":
            bpe.normalizer = normalizers.NFC()
    elif rule in ("smollm", "starcoder", "refact", "command-r"):
        bpe.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
            ]
        )
    elif rule == "gpt-2":
        bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    else:
        raise TokenizerError(
            f"{file} cuts words by {rule!r}, which is not known here. "
            "Use the model's Hugging Face folder with its tokenizer.json instead"
        )
