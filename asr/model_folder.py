"""A folder with a CTranslate2 Whisper model, looked at before it is loaded: what is wrong with which file.

The loader's own messages name neither the file nor what to do, and some faults show only at the first audio.
"""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import Tokenizer

_VOCABULARIES = ("vocabulary.json", "vocabulary.txt")
_NEEDED = ("<|startoftranscript|>", "<|endoftext|>", "<|notimestamps|>")
"""Towards the end of every Whisper vocabulary: one that is cut short lacks them."""

_SUPPRESSED = ("suppress_ids", "suppress_ids_begin")

ADVICE = "convert or fetch the model again (`rejoinder models verify` and `pull` for one of ours)"


def check_folder(path: Path) -> None:
    """Raises FileNotFoundError where something is missing, ValueError where a file is damaged."""
    if not path.is_dir():
        reason = "it is no folder" if path.exists() else "there is no such folder"
        raise FileNotFoundError(f"{path} is no CTranslate2 Whisper model: {reason}")
    vocabulary = next((name for name in _VOCABULARIES if (path / name).exists()), _VOCABULARIES[-1])
    for name in ("model.bin", "config.json", "tokenizer.json", vocabulary):
        file = path / name
        if not file.is_file():
            raise FileNotFoundError(f"{path} is no CTranslate2 Whisper model: it holds no {name}; {ADVICE}")
        if file.stat().st_size == 0:
            raise damaged(file, "it is empty")
    _check_config(path / "config.json")
    _check_vocabulary(path / vocabulary)


def read_tokenizer(file: Path) -> Tokenizer:
    """Raises ValueError where it is damaged."""
    try:
        return Tokenizer.from_str(json.dumps(json.loads(file.read_bytes())))
    except Exception as error:  # the library raises nothing more special
        raise damaged(file, str(error)) from error


def damaged(file: Path, reason: str) -> ValueError:
    """The error for a file that cannot be used."""
    return ValueError(f"{file} is cut short or damaged ({reason}): {ADVICE}")


def _check_json(file: Path, kind: type) -> object:
    try:
        values: object = json.loads(file.read_bytes())
    except ValueError as error:
        raise damaged(file, str(error)) from error
    if not isinstance(values, kind):
        raise damaged(file, f"a JSON {kind.__name__} is due, not a {type(values).__name__}")
    return values


def _check_config(file: Path) -> None:
    """CTranslate2 takes any JSON and crashes in the first pass where these lists are missing."""
    values = _check_json(file, dict)
    assert isinstance(values, dict)
    for name in _SUPPRESSED:
        ids = values.get(name)
        if not (isinstance(ids, list) and all(isinstance(token, int) for token in ids)):
            raise damaged(file, f"{name} is no list of tokens")


def _check_vocabulary(file: Path) -> None:
    if file.suffix == ".json":
        tokens = _check_json(file, list)
        assert isinstance(tokens, list)
        known = set(map(str, tokens))
    else:
        known = set(file.read_bytes().decode(errors="replace").split("\n"))
    if missing := [token for token in _NEEDED if token not in {entry.strip() for entry in known}]:
        raise damaged(file, f"it lacks {' and '.join(missing)}")
