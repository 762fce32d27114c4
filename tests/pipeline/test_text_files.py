"""Text files as editors write them: byte-order marks, line ends, and encodings that are refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from llm.checkpoints import CheckpointError, read_checkpoint
from llm.drafters.learned.compatibility import HeadsError
from pipeline.agent import AgentError, find_agents, load_agent
from pipeline.config import ConfigError, load
from pipeline.loading.train_heads import train_heads
from pipeline.text_files import NotUtf8, read_text
from tts.piper import PiperError, PiperVoice

Encode = Callable[[str], bytes]

READ: dict[str, Encode] = {
    "plain": lambda text: text.encode(),
    "mark": lambda text: text.encode("utf-8-sig"),
    "carriage returns": lambda text: text.replace("\n", "\r\n").encode(),
    "mark and carriage returns": lambda text: text.replace("\n", "\r\n").encode("utf-8-sig"),
    "old Mac": lambda text: text.replace("\n", "\r").encode(),
}
REFUSED: dict[str, tuple[Encode, str]] = {
    "UTF-16": (lambda text: text.encode("utf-16"), "is in UTF-16"),
    "UTF-16, big end first": (lambda text: b"\xfe\xff" + text.encode("utf-16-be"), "is in UTF-16"),
    "UTF-16 without a mark": (lambda text: text.encode("utf-16-le"), "is in UTF-16"),
    "UTF-32": (lambda text: text.encode("utf-32"), "is in UTF-16"),
    "Latin-1": (lambda text: text.encode("latin-1"), r"is not in UTF-8 \(byte 0xe9 in line 2\)"),
    "Windows-1252 behind a mark": (
        lambda text: b"\xef\xbb\xbf" + text.replace("é", "’").encode("cp1252"),
        r"is not in UTF-8 \(byte 0x92 in line 2\)",
    ),
    "cut inside a character": (
        lambda text: text.encode() + b"\xc3",
        r"is not in UTF-8 \(byte 0xc3 in line 5\)",
    ),
}
AGENT = 'greeting = """\nCafé,\nhello."""\npersona = "p"\n'
SETTINGS = "max_calls = 7\nagent = 'café.toml'\n"

read = pytest.mark.parametrize("encode", READ.values(), ids=READ.keys())
refused = pytest.mark.parametrize(("encode", "reason"), REFUSED.values(), ids=REFUSED.keys())


def written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@read
def test_an_agent(tmp_path: Path, encode: Encode) -> None:
    path = written(tmp_path, "mine.toml", encode(AGENT))
    assert load_agent(path).greeting == "Café,\nhello."
    assert find_agents(tmp_path)["mine"] == path


@read
def test_settings(tmp_path: Path, encode: Encode) -> None:
    settings = load(file=written(tmp_path, "settings.toml", encode(SETTINGS)))
    assert (settings.max_calls, settings.agent) == (7, "café.toml")


@read
def test_any_text(tmp_path: Path, encode: Encode) -> None:
    assert read_text(written(tmp_path, "any.txt", encode("é\n\nb\n"))) == "é\n\nb\n"


@refused
def test_other_encodings_are_refused_by_name(tmp_path: Path, encode: Encode, reason: str) -> None:
    path = written(tmp_path, "other.toml", encode(AGENT))
    wanted = rf"other\.toml {reason}.*: save it as UTF-8"
    with pytest.raises(NotUtf8, match=wanted):
        read_text(path)
    with pytest.raises(AgentError, match=wanted):
        load_agent(path)
    with pytest.raises(ConfigError, match=wanted):
        load(file=path)
    with pytest.raises(HeadsError, match=wanted):
        train_heads(load({"llm": "smallest"}), "medusa", tmp_path / "heads", corpus=path, steps=1)


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    for data in (b"", b"\xef\xbb\xbf"):
        assert read_text(written(tmp_path, "empty.toml", data)) == ""
        assert load(file=tmp_path / "empty.toml").max_calls == 4


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 5000 + "]" * 5000, "a = " + "{a = " * 3000 + "1" + "}" * 3000]
)
def test_values_that_are_nested_too_deep_are_said(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, "deep.toml", text.encode())
    with pytest.raises(AgentError, match=r"deep\.toml is not valid TOML here: .*nested too deep"):
        load_agent(path)
    with pytest.raises(ConfigError, match=r"deep\.toml is not valid TOML here: .*nested too deep"):
        load(file=path)


def test_a_device_without_an_end_is_said() -> None:
    with pytest.raises(ConfigError, match=r"/dev/zero has more than \d+ bytes"):
        load(file=Path("/dev/zero"))
    with pytest.raises(AgentError, match=r"/dev/urandom has more than \d+ bytes"):
        load_agent(Path("/dev/urandom"))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_models_json_is_read_in_any_encoding_that_json_may_have(tmp_path: Path, encoding: str) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_bytes(json.dumps({"architectures": ["Other"]}).encode(encoding))
    with pytest.raises(CheckpointError, match="Other"):
        read_checkpoint(model)
    voice = written(tmp_path, "voice.onnx", b"none")
    written(tmp_path, "voice.onnx.json", json.dumps({"phoneme_type": "text"}).encode(encoding))
    with pytest.raises(PiperError, match=r"voice\.onnx takes no espeak-ng phonemes"):
        PiperVoice(voice)
