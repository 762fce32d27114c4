"""Models that are cut short, empty or something else, as settings may name them: one clear line, with the
file's name and what to do."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from asr.end_of_turn import SmartTurn
from asr.recogniser import Recogniser
from asr.vad import SileroVad
from llm.language_model import LanguageModel
from pipeline.config import load
from pipeline.models import catalogue
from pipeline.service import CannotStart, Service
from tests.machine import program
from tts.load import load_voice

Damage = Callable[[bytes], bytes]

DAMAGES: dict[str, Damage] = {
    "empty": lambda data: b"",
    "one byte": lambda data: data[:1],
    "its beginning": lambda data: data[:100],
    "half": lambda data: data[: len(data) // 2],
    "without its last bytes": lambda data: data[:-5],
    "text": lambda data: b"<html>404 Not Found</html>\n" * 9,
    "JSON": lambda data: b'{"error": "not found"}',
    "a JSON list": lambda data: b"[]",
    "zeros": lambda data: bytes(5000),
}
damages = pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())


def one_line(error: BaseException, name: str) -> None:
    message = str(error)
    assert name in message
    assert any(advice in message for advice in ("fetch", "Fetch", "pull")), message


def whisper(tmp_path: Path, name: str, data: bytes | None) -> Path:
    """A folder with the smallest model, one file of which is another, or missing."""
    source, folder = catalogue.path("whisper-tiny.en"), tmp_path / "whisper"
    folder.mkdir()
    for file in source.iterdir():
        os.symlink(file, folder / file.name)
    (folder / name).unlink()
    if data is not None:
        (folder / name).write_bytes(data)
    return folder


WHISPER_FILES = ["model.bin", "config.json", "tokenizer.json", "vocabulary.txt"]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        (name, damage)
        for name in WHISPER_FILES
        for damage in DAMAGES
        # the spelling of the last token, a time, is never looked at
        if (name, damage) != ("vocabulary.txt", "without its last bytes")
    ],
)
def test_a_file_of_a_whisper_folder(tmp_path: Path, name: str, damage: str) -> None:
    data = DAMAGES[damage]((catalogue.path("whisper-tiny.en") / name).read_bytes())
    with pytest.raises(ValueError, match="cut short or damaged") as error:
        Recogniser(whisper(tmp_path, name, data)).warm_up()
    one_line(error.value, name)


@pytest.mark.parametrize("name", WHISPER_FILES)
def test_a_missing_file_of_a_whisper_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match=f"holds no {name}") as error:
        Recogniser(whisper(tmp_path, name, None))
    one_line(error.value, name)


def test_what_is_no_whisper_folder(tmp_path: Path) -> None:
    file, empty = tmp_path / "model.bin", tmp_path / "empty"
    file.write_bytes(b"WHISPER")
    empty.mkdir()
    with pytest.raises(FileNotFoundError, match="it is no folder"):
        Recogniser(file)
    with pytest.raises(FileNotFoundError, match=r"holds no model\.bin"):
        Recogniser(empty)
    with pytest.raises(FileNotFoundError, match="there is no such folder"):
        Recogniser(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "text", ["{}", '{"suppress_ids": [1]}', '{"suppress_ids": 1, "suppress_ids_begin": [1]}', "null"]
)
def test_a_whisper_configuration_of_another_shape(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"config\.json is cut short or damaged"):
        Recogniser(whisper(tmp_path, "config.json", text.encode()))


def test_a_vocabulary_in_json_is_looked_at_like_one_in_text(tmp_path: Path) -> None:
    tokens = (catalogue.path("whisper-tiny.en") / "vocabulary.txt").read_text(encoding="utf-8").split("\n")
    folder = whisper(tmp_path, "vocabulary.txt", None)
    vocabulary = folder / "vocabulary.json"
    vocabulary.write_text(json.dumps(tokens[:-1]), encoding="utf-8")
    Recogniser(folder)
    for cut in (json.dumps(tokens[:20_000]), json.dumps(tokens)[:90_000], "{}", ""):
        vocabulary.write_text(cut, encoding="utf-8")
        with pytest.raises(ValueError, match=r"vocabulary\.json is cut short or damaged"):
            Recogniser(folder)


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    data = (catalogue.path("whisper-tiny.en") / "tokenizer.json").read_bytes()
    Recogniser(whisper(tmp_path, "tokenizer.json", b"\xef\xbb\xbf" + data))


@damages
def test_the_end_of_turn_model(tmp_path: Path, damage: Damage) -> None:
    file = tmp_path / "turn.onnx"
    file.write_bytes(damage(catalogue.path("smart-turn-v3.2").read_bytes()))
    with pytest.raises(ValueError, match="cut short, damaged or no ONNX model") as error:
        SmartTurn(file)
    one_line(error.value, "turn.onnx")


@damages
def test_the_voice_activity_model(tmp_path: Path, damage: Damage) -> None:
    file = tmp_path / "activity.onnx"
    file.write_bytes(damage(catalogue.path("silero-vad-v6").read_bytes()))
    with pytest.raises(ValueError, match="cut short, damaged or no ONNX model") as error:
        SileroVad(file)
    one_line(error.value, "activity.onnx")


def test_networks_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a Silero v6 model"):
        SileroVad(catalogue.path("smart-turn-v3.2"))
    with pytest.raises(ValueError, match="is not a Smart Turn v3 model"):
        SmartTurn(catalogue.path("silero-vad-v6"))
    with pytest.raises(FileNotFoundError, match="there is no model at"):
        SileroVad(tmp_path / "nowhere.onnx")


@pytest.mark.parametrize("path", ["/dev/null", "/dev/zero"])
def test_a_device_is_no_gguf_file(path: str) -> None:
    with pytest.raises(ValueError, match=f"{path} is a pipe or a device, not a GGUF file"):
        LanguageModel.load(Path(path))


@damages
def test_a_gguf_file(tmp_path: Path, damage: Damage) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(damage(catalogue.path("smollm2-135m").read_bytes()))
    with pytest.raises(ValueError, match="cut short") as error:
        LanguageModel.load(file, context=512, threads=1, cache=tmp_path)
    one_line(error.value, "model.gguf")


@damages
@pytest.mark.parametrize("name", ["voice.onnx", "voice.onnx.json"])
def test_a_piper_voice(tmp_path: Path, name: str, damage: Damage) -> None:
    program("espeak-ng")
    source = next(catalogue.path("piper-joe").glob("*.onnx"))
    for end in (".onnx", ".onnx.json"):
        os.symlink(source.with_suffix(end), tmp_path / f"voice{end}")
    data = damage((tmp_path / name).read_bytes())
    (tmp_path / name).unlink()
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=name.replace(".", r"\.")):
        load_voice(f"piper:{tmp_path / 'voice.onnx'}")


@pytest.mark.parametrize(
    "text", ['{"audio": [], "espeak": 3}', '{"audio": {"sample_rate": "x"}}', '{"audio": null}', "null"]
)
def test_a_voices_configuration_of_another_shape(tmp_path: Path, text: str) -> None:
    (tmp_path / "voice.onnx").write_bytes(b"none")
    (tmp_path / "voice.onnx.json").write_text(text)
    with pytest.raises(ValueError, match=r"voice\.onnx\.json is no Piper voice's configuration"):
        load_voice(f"piper:{tmp_path / 'voice.onnx'}")


def test_the_service_says_so_when_it_starts(tmp_path: Path) -> None:
    data = (catalogue.path("whisper-tiny.en") / "model.bin").read_bytes()
    folder = whisper(tmp_path, "model.bin", data[: len(data) // 2])
    settings = load({"asr_model": str(folder), "llm": "smallest", "latency_log": tmp_path / "latency.db"})
    with pytest.raises(CannotStart, match=r"model\.bin is cut short or damaged"):
        asyncio.run(Service.start(settings))
