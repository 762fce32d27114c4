"""Recordings as files: the content decides what is read; what cannot be written is said early."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import resource
import stat
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from typer.testing import CliRunner, Result

from pipeline.audio import Audio
from pipeline.config import Settings
from tests.web.phone.served import phone_settings
from tests.web.phone.served import serving as telephones
from tests.web.scripted import ScriptedCall, on_loop, serving
from tests.web.test_talk import answer, greet
from web.cli import main
from web.commands import call
from web.commands.recordings import (
    WRITABLE,
    UnusableRecording,
    check_destination,
    read_recording,
    write_recording,
)
from web.phone.simulator.call import SimulatedCall
from web.phone.simulator.line import Network

pytestmark = pytest.mark.filterwarnings("error")

TONE = (0.3 * np.sin(2 * np.pi * 440 * np.arange(48_000) / 48_000)).astype(np.float32)


def written(file: Path, samples: np.ndarray, rate: int, container: str, subtype: str) -> Path:
    """A recording whose name says nothing of its format, or a lie."""
    channels = 1 if samples.ndim == 1 else samples.shape[1]
    encoded = io.BytesIO()
    with soundfile.SoundFile(encoded, "w", rate, channels, subtype, format=container) as sound:
        sound.write(samples)
    file.write_bytes(encoded.getvalue())
    return file


# ---- what is read


@pytest.mark.parametrize(
    ("name", "container", "subtype"),
    [
        ("wav.raw", "WAV", "PCM_16"),
        ("wav.mp3", "WAV", "PCM_24"),
        ("wav.vox", "WAV", "PCM_U8"),
        ("wav.gsm", "WAV", "DOUBLE"),
        ("wav.txt", "WAV", "FLOAT"),
        ("wav", "WAV", "ALAW"),
        ("flac.wav", "FLAC", "PCM_16"),
        ("mp3.wav", "MP3", "MPEG_LAYER_III"),
        ("mp3.raw", "MP3", "MPEG_LAYER_III"),
        ("vorbis.flac", "OGG", "VORBIS"),
        ("opus.m4a", "OGG", "OPUS"),
        ("aiff.sd2", "AIFF", "PCM_S8"),
        ("caf.WAV", "CAF", "PCM_32"),
    ],
)
def test_the_content_decides_whatever_the_name(
    tmp_path: Path, name: str, container: str, subtype: str
) -> None:
    audio = read_recording(written(tmp_path / name, TONE, 48_000, container, subtype))
    assert len(audio) == pytest.approx(24_000, abs=2000)  # some codecs add a frame
    assert np.sqrt(np.mean(audio[4000:-4000] ** 2)) == pytest.approx(0.3 / np.sqrt(2), rel=0.03)


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 44_100, 96_000, 192_000])
def test_any_rate_and_channels_become_24_khz_mono(tmp_path: Path, rate: int) -> None:
    tone = 0.5 * np.sin(2 * np.pi * 440 * np.arange(rate) / rate)
    for channels in ([tone, 0 * tone], [tone, -tone], [tone * np.nan, tone]):
        file = written(tmp_path / "a", np.stack(channels, axis=1), rate, "WAV", "DOUBLE")
        audio: Audio = read_recording(file)
        assert audio.dtype == np.float32
        assert len(audio) == pytest.approx(24_000, abs=4)
        assert np.sqrt(np.mean(audio[2000:-2000] ** 2)) == pytest.approx(0.5 / np.sqrt(2), rel=0.01)


@pytest.mark.parametrize("factor", [2.0**15, 2.0**23, 2.0**31])
def test_a_float_file_in_integers_scale_is_as_loud_as_it_was(tmp_path: Path, factor: float) -> None:
    audio = read_recording(written(tmp_path / "a", TONE * np.float64(factor), 48_000, "WAV", "DOUBLE"))
    assert np.abs(audio).max() == pytest.approx(0.3, rel=0.01)


@pytest.mark.parametrize("fault", [20.0, -40_000.0, 1e30, np.inf])
def test_a_sample_that_is_a_fault_does_not_make_the_rest_silent(tmp_path: Path, fault: float) -> None:
    samples = TONE.astype(np.float64)
    samples[[100, 9000, 20_000]] = fault
    audio = read_recording(written(tmp_path / "a", samples, 48_000, "WAV", "DOUBLE"))
    assert np.sqrt(np.mean(audio**2)) == pytest.approx(0.3 / np.sqrt(2), rel=0.02)


def test_a_word_in_integers_in_a_long_silence_is_no_fault(tmp_path: Path) -> None:
    """A fifth of a second in three minutes."""
    samples = np.random.default_rng(1).integers(-2, 3, 180 * 48_000).astype(np.float64)
    samples[: len(TONE) // 5] += TONE[: len(TONE) // 5] * np.float64(32768)
    audio = read_recording(written(tmp_path / "a", samples, 48_000, "WAV", "DOUBLE"))
    assert np.abs(audio).max() == pytest.approx(0.3, rel=0.02)


def test_one_sample_and_the_smallest_numbers_are_no_error(tmp_path: Path) -> None:
    assert len(read_recording(written(tmp_path / "a", np.full(1, 0.5), 48_000, "WAV", "FLOAT"))) <= 1
    audio = read_recording(written(tmp_path / "b", TONE * np.float64(1e-310), 48_000, "WAV", "DOUBLE"))
    assert np.abs(audio).max() < 1e-30


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("headerless.raw", (TONE * 32767).astype("<i2").tobytes(), "WAV, FLAC, MP3, Ogg.*without a header"),
        ("notes.wav", b"not audio", "not a recording that can be read"),
        ("notes.mp3", b"# Notes\n" * 500, "not a recording that can be read"),
        ("answer.m4a", b"\0\0\0\x20ftypM4A " + bytes(5000), "not a recording.*convert"),
        ("cut.wav", b"RIFF\x24\0\0\0WAVE", "not a recording|is empty"),
        ("noise.ogg", np.random.default_rng(1).bytes(20_000), "not a recording that can be read"),
        ("nothing.wav", b"", "is empty"),
        ("nothing.raw", b"", "is empty"),
    ],
)
def test_what_is_no_recording_is_said(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UnusableRecording, match=f"{name}.*{says}") as refused:
        read_recording(tmp_path / name)
    assert "BytesIO" not in str(refused.value)


def test_a_recording_without_frames_or_numbers_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnusableRecording, match="is empty"):
        read_recording(written(tmp_path / "a.wav", TONE[:0], 48_000, "WAV", "FLOAT"))
    with pytest.raises(UnusableRecording, match="none of its samples is a number"):
        read_recording(written(tmp_path / "b.wav", TONE * np.nan, 48_000, "WAV", "FLOAT"))
    with pytest.raises(UnusableRecording, match="1 samples a second"):
        read_recording(written(tmp_path / "c.wav", TONE, 1, "WAV", "FLOAT"))


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.wav")
    for path, says in {
        tmp_path / "gone.wav": "there is no file",
        tmp_path / "no" / "gone.wav": "there is no file",
        tmp_path: "is a folder",
        tmp_path / "pipe.wav": "is a pipe or a device",
        Path("/dev/null"): "is a pipe or a device",
        tmp_path / ("a" * 300): "cannot be read: File name too long",
        Path("-"): "there is no file -",
    }.items():
        with pytest.raises(UnusableRecording, match=says):
            read_recording(path)


def test_a_file_that_may_not_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    file = written(tmp_path / "a.wav", TONE, 48_000, "WAV", "FLOAT")
    monkeypatch.setattr(Path, "read_bytes", denied)  # whoever runs the tests may read everything
    with pytest.raises(UnusableRecording, match=r"a\.wav cannot be read: Permission denied"):
        read_recording(file)


# ---- what is written


@pytest.mark.parametrize("ending", [*WRITABLE, ".WAV", ".Mp3"])
@pytest.mark.parametrize("rate", [8_000, 16_000, 24_000])
def test_the_name_decides_what_is_written(tmp_path: Path, ending: str, rate: int) -> None:
    file = tmp_path / f"answer{ending}"
    check_destination(file, [])
    assert not list(tmp_path.iterdir())
    samples = np.resize(TONE[::2], 3 * rate)
    write_recording(file, samples, rate)
    container, subtype = WRITABLE[ending.lower()]
    with soundfile.SoundFile(file) as sound:
        assert (sound.format, sound.subtype, sound.samplerate) == (container, subtype, rate)
        heard = sound.read()
    assert len(heard) == pytest.approx(3 * rate, abs=rate // 5)
    assert np.std(heard) == pytest.approx(np.std(samples), rel=0.05)


def test_usual_formats_can_be_written() -> None:
    assert {".wav", ".flac", ".ogg"} <= set(WRITABLE)


def test_a_long_answer_is_written_as_vorbis(tmp_path: Path) -> None:
    """In one piece it overruns the encoder's stack, and that ends the process."""
    long = np.zeros(24_000 * 60 * 10, np.float32)
    write_recording(tmp_path / "a.ogg", long, 24_000)
    assert soundfile.info(tmp_path / "a.ogg").frames == len(long)


def places(folder: Path) -> dict[Path, str]:
    """Where no recording can be written, and what is said of it."""
    (folder / "folder.wav").mkdir()
    (folder / "there.wav").write_bytes(b"old")
    (folder / "spoken.wav").write_bytes(b"spoken")
    (folder / "other-name.wav").symlink_to(folder / "spoken.wav")
    (folder / "same.flac").hardlink_to(folder / "spoken.wav")
    (folder / "astray.wav").symlink_to(folder / "no" / "a.wav")
    os.mkfifo(folder / "pipe.wav")
    return {
        Path("-"): "standard output",
        folder: "is a folder",
        folder / "folder.wav": "is a folder",
        folder / "x.raw": r"must end in one of \.wav",
        folder / "x.m4a": r"must end in one of \.wav",
        folder / "x": "must end in one of",
        folder / "x.wav.txt": "must end in one of",
        folder / ".wav": "must end in one of",
        Path("/dev/null"): "must end in one of",
        folder / "no" / "x.wav": "there is no folder",
        folder / "there.wav" / "x.wav": "there is no folder|Not a directory",
        folder / "astray.wav": "there is no folder",
        folder / "spoken.wav": "one of the recordings to speak",
        folder / "other-name.wav": "one of the recordings to speak",
        folder / "same.flac": "one of the recordings to speak",
        folder / "folder.wav" / ".." / "spoken.wav": "one of the recordings to speak",
        folder / "pipe.wav": "is a pipe or a device",
        folder / f"{'a' * 300}.wav": "File name too long",
    }


def test_where_nothing_can_be_written_is_said(tmp_path: Path) -> None:
    for path, says in places(tmp_path).items():
        with pytest.raises(UnusableRecording, match=says):
            check_destination(path, [tmp_path / "spoken.wav", tmp_path / "gone.wav"])
    assert (tmp_path / "there.wav").read_bytes() == b"old"
    assert (tmp_path / "spoken.wav").read_bytes() == b"spoken"


def test_a_file_that_may_not_be_changed_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.wav").touch(0o444)
    monkeypatch.setattr(os, "access", lambda *_: False)  # whoever runs the tests may write everything
    with pytest.raises(UnusableRecording, match="may not be changed"):
        check_destination(tmp_path / "a.wav", [])


def test_a_folder_that_takes_no_files_is_said() -> None:
    with pytest.raises(UnusableRecording, match=r"/proc/a\.wav cannot be written"):
        check_destination(Path("/proc/a.wav"), [])


@contextlib.contextmanager
def little_room() -> Iterator[None]:
    """As on a disk that is nearly full: no file can have more than a thousand bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_without_room_is_said_before_and_keeps_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "a.wav"
    file.write_bytes(b"old")
    with little_room(), pytest.raises(UnusableRecording, match="cannot be written: File too large"):
        check_destination(file, [])
    with little_room(), pytest.raises(UnusableRecording, match="nor could it be kept elsewhere"):
        write_recording(file, TONE, 24_000)
    assert file.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["a.wav"]


def test_the_file_that_a_link_leads_to_is_replaced_for_its_owner_only(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"old")
    (tmp_path / "link.wav").symlink_to(tmp_path / "a.wav")
    write_recording(tmp_path / "link.wav", TONE, 24_000)
    assert (tmp_path / "link.wav").is_symlink()
    assert soundfile.info(tmp_path / "a.wav").frames == len(TONE)
    assert stat.S_IMODE((tmp_path / "a.wav").stat().st_mode) == 0o600


# ---- the commands


async def run_command(*arguments: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, main, [*arguments])


@contextlib.asynccontextmanager
async def talking_to(tmp_path: Path, save: Path) -> AsyncIterator[tuple[ScriptedCall, asyncio.Task[Result]]]:
    """`rejoinder talk` with two recordings, as the first of them is being spoken."""
    question = str(written(tmp_path / "question.txt", TONE[::2] + TONE[::2], 24_000, "WAV", "PCM_16"))
    async with serving() as (server, service):
        command = run_command("talk", question, question, "--url", server.address, "--save", str(save))
        running = asyncio.create_task(command)
        scripted = await service.first_call()
        await greet(scripted)
        await scripted.until_heard(0.2)
        yield scripted, running
        await running


def rescued_in(folder: Path) -> list[Path]:
    return list(folder.glob("rejoinder-*.wav"))


@on_loop
async def test_what_was_answered_before_a_call_failed_is_saved(tmp_path: Path) -> None:
    save = tmp_path / "answer.flac"
    async with talking_to(tmp_path, save) as (scripted, running):
        await answer(scripted, 1)
        await scripted.until_told("playback", "r1", 80.0)
        await scripted.until_heard(len(scripted.heard) / 16_000 + 1.5)  # the second recording is spoken
        scripted.hang_up("goodbye")
        result = await running
    assert result.exit_code == 1
    assert "goodbye" in result.output
    assert soundfile.info(save).frames == 1920


@on_loop
async def test_what_cannot_be_saved_in_the_end_is_kept_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "folder"
    elsewhere.mkdir()
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    async with talking_to(tmp_path, folder / "answer.mp3") as (scripted, running):
        folder.rmdir()
        await answer(scripted, 1)
        await scripted.until_told("playback", "r1", 80.0)
        await scripted.until_heard(len(scripted.heard) / 16_000 + 1.5)
        await answer(scripted, 2)
        result = await running
    assert result.exit_code == 1
    assert "No such file or directory" in result.output
    (kept,) = rescued_in(elsewhere)
    assert str(kept) in result.output.replace("\n", "")
    assert soundfile.info(kept).frames == 1920 + 12_000 + 1920


@pytest.mark.parametrize("command", ["talk", "call"])
def test_nothing_is_started_for_files_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    async def start(*_: Any) -> None:
        raise AssertionError("started in vain")

    monkeypatch.setattr("pipeline.service.Service.start", start)
    spoken = str(written(tmp_path / "a.wav", TONE, 48_000, "WAV", "PCM_16"))
    (tmp_path / "headerless.raw").write_bytes(bytes(1000))
    for arguments in (
        [spoken, "--save", str(tmp_path / "x.raw")],
        [spoken, "--save", str(tmp_path / "x")],
        [spoken, "--save", str(tmp_path / "no" / "x.wav")],
        [spoken, "--save", str(tmp_path)],
        [spoken, "--save", spoken],
        [spoken, "--save", "-"],
        [spoken, str(tmp_path)],
        [spoken, str(tmp_path / "headerless.raw")],
    ):
        result = CliRunner().invoke(main, [command, *arguments])
        assert result.exit_code == 1, result.output
        assert result.output.startswith("Error: ")
        assert "started in vain" not in result.output


@on_loop
async def test_what_a_caller_heard_before_a_call_failed_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail_after_the_greeting(phone: SimulatedCall, *_: Any) -> None:
        await phone.until_quiet(0.2)
        raise call.CallNotMade("no answer")

    monkeypatch.setattr(call, "_converse", fail_after_the_greeting)
    save = tmp_path / "heard.wav"
    async with telephones(phone_settings(phone_unsigned=True)) as served:
        with pytest.raises(call.CallNotMade):
            await call._call(Settings(), "twilio", served.address(""), [], Network(), save)
    heard, rate = soundfile.read(save)
    assert rate == 8_000
    assert np.abs(heard).max() > 0.01
