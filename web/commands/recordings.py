"""Recordings as files: what a caller says comes out of one, what was answered goes into one.

What is in a file decides how it is read; its name decides how it is written.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import soundfile
import typer

from pipeline.audio import Audio, StreamResampler, in_full_scale, mix_to_mono
from web.talk_client import WIRE_RATE

_RATES = (1_000, 768_000)
_BLOCK = 65_536
"""Frames at once: a header may promise more than there is, and Vorbis overruns its stack on long pieces."""

_READABLE = "WAV, FLAC, MP3, Ogg (Vorbis, Opus), AIFF, AU, CAF"
_FORMATS = {
    ".wav": ("WAV", "PCM_16"),
    ".flac": ("FLAC", "PCM_16"),
    ".mp3": ("MP3", "MPEG_LAYER_III"),
    ".ogg": ("OGG", "VORBIS"),
    ".opus": ("OGG", "OPUS"),
    ".aiff": ("AIFF", "PCM_16"),
    ".aif": ("AIFF", "PCM_16"),
    ".au": ("AU", "PCM_16"),
    ".caf": ("CAF", "PCM_16"),
    ".w64": ("W64", "PCM_16"),
    ".rf64": ("RF64", "PCM_16"),
}
WRITABLE = {name: how for name, how in _FORMATS.items() if soundfile.check_format(*how)}
"""Endings of names, with libsndfile's format and subtype: those that this machine's libsndfile can write."""

_PROBE_BYTES = 1 << 20
"""About twenty seconds of an answer: a disk that cannot take that is full."""


Recordings = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help="Recordings, one turn each: any rate and format, whatever their names. Of several channels the "
        "loudest is spoken.",
    ),
]
HOW_SAVED = f"in the format that its name ends in: {', '.join(WRITABLE)}. A file that is there is replaced"


class UnusableRecording(Exception):
    """A file that cannot be spoken, or cannot be written; the message says which and why."""


# ---- reading


def read_recording(file: Path) -> Audio:
    """A file as float32 mono at 24 kHz, within [-1, 1], whatever its format, scale, rate and channels.

    Of several channels the loudest counts (pipeline.audio.mix_to_mono). Raises UnusableRecording.
    """
    samples, rate = _decoded(file, _content(file))
    if len(samples) == 0:
        raise UnusableRecording(f"{file} is empty")
    if not _RATES[0] <= rate <= _RATES[1]:
        raise UnusableRecording(f"{file} has {rate} samples a second: {_RATES[0]} to {_RATES[1]} can be used")
    try:
        audio = mix_to_mono(in_full_scale(samples), rate)
    except ValueError as error:
        raise UnusableRecording(f"{file} cannot be used: {error}") from None
    resampler = StreamResampler(rate, WIRE_RATE)
    resampled = np.concatenate([resampler.push(audio), resampler.flush()])
    return np.asarray(np.clip(resampled, -1.0, 1.0))


def _content(file: Path) -> bytes:
    try:
        kind = file.stat().st_mode
        if stat.S_ISDIR(kind):
            raise UnusableRecording(f"{file} is a folder, not a recording")
        if not stat.S_ISREG(kind):  # a pipe might never end, nor begin
            raise UnusableRecording(f"{file} is a pipe or a device: only files can be spoken")
        content = file.read_bytes()
    except FileNotFoundError:
        raise UnusableRecording(f"there is no file {file}") from None
    except OSError as error:
        raise UnusableRecording(f"{file} cannot be read: {error.strerror}") from None
    if not content:
        raise UnusableRecording(f"{file} is empty")
    return content


def _decoded(file: Path, content: bytes) -> tuple[np.ndarray, int]:
    """Float64 frames x channels, and their rate. Without a name the library goes by the content."""
    try:
        with soundfile.SoundFile(io.BytesIO(content)) as sound:
            blocks = [np.zeros((0, sound.channels))]
            while len(block := sound.read(_BLOCK, dtype="float64", always_2d=True)):
                blocks.append(block)
            return np.concatenate(blocks), sound.samplerate
    except soundfile.SoundFileError as error:
        reason = getattr(error, "error_string", str(error)).rstrip(".")
        raise UnusableRecording(
            f"{file} is not a recording that can be read ({reason}). These can, whatever their names: "
            f"{_READABLE}. Samples without a header tell no rate and no format: convert them first"
        ) from None


# ---- writing


def check_destination(file: Path, inputs: Sequence[Path]) -> None:
    """Before a conversation that is to be saved: `file` could be written now, and is none of `inputs`.

    Nothing is changed. Raises UnusableRecording.
    """
    if str(file) == "-":
        raise UnusableRecording("a recording is not written to standard output: name a file")
    with _clearly(file):
        if file.is_dir():
            raise UnusableRecording(f"{file} is a folder: name a file in it")
        _format(file)
        target = Path(os.path.realpath(file))
        if not target.parent.is_dir():
            raise UnusableRecording(f"there is no folder {target.parent}")
        if _exists(target):
            if not target.is_file():
                raise UnusableRecording(f"{file} is a pipe or a device: name a file")
            if any(one.exists() and one.samefile(target) for one in inputs):
                raise UnusableRecording(f"{file} is one of the recordings to speak: name another file")
            if not os.access(target, os.W_OK):
                raise UnusableRecording(f"{file} cannot be written: it is there and may not be changed")
        with tempfile.TemporaryFile(dir=target.parent) as probe:
            probe.write(bytes(_PROBE_BYTES))


def write_recording(file: Path, audio: Audio, rate: int) -> None:
    """Float32 mono in the format of the name's ending, with 16 bits where that has bits.

    The file is replaced once the new one is whole. Where it cannot be written, the audio is kept as WAV in
    the folder for temporary files, and the error says under what name. Raises UnusableRecording.
    """
    try:
        with _clearly(file):
            _replace(Path(os.path.realpath(file)), _encoded(audio, rate, *_format(file)))
    except UnusableRecording as error:
        raise UnusableRecording(f"{error}; {_rescued(audio, rate)}") from None


def _format(file: Path) -> tuple[str, str]:
    try:
        return WRITABLE[file.suffix.lower()]
    except KeyError:
        raise UnusableRecording(
            f"{file} cannot be written: its name must end in one of {', '.join(WRITABLE)}"
        ) from None


def _encoded(audio: Audio, rate: int, container: str, subtype: str) -> bytes:
    encoded = io.BytesIO()
    with soundfile.SoundFile(encoded, "w", rate, 1, subtype, format=container) as sound:
        for start in range(0, len(audio), _BLOCK):
            sound.write(audio[start : start + _BLOCK])
    return encoded.getvalue()


def _replace(target: Path, content: bytes) -> None:
    """For its owner only, as callers' voices are."""
    number, part = tempfile.mkstemp(prefix=".rejoinder-", suffix=".part", dir=target.parent)
    try:
        with open(number, "wb") as stream:
            os.fchmod(number, stat.S_IRUSR | stat.S_IWUSR)  # whatever the umask took
            stream.write(content)
            stream.flush()
            os.fsync(number)
        os.replace(part, target)
    except BaseException:
        os.unlink(part)
        raise


def _rescued(audio: Audio, rate: int) -> str:
    """Where the audio is instead."""
    try:
        number, name = tempfile.mkstemp(prefix="rejoinder-", suffix=".wav")
        with open(number, "wb") as stream:
            stream.write(_encoded(audio, rate, *_FORMATS[".wav"]))
    except OSError as error:
        return f"nor could it be kept elsewhere: {error.strerror}"
    return f"it is kept in {name}"


def _exists(target: Path) -> bool:
    """Unlike Path.exists this tells what may not be looked at."""
    try:
        target.stat()
    except FileNotFoundError:
        return False
    return True


@contextlib.contextmanager
def _clearly(file: Path) -> Iterator[None]:
    try:
        yield
    except (soundfile.SoundFileError, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UnusableRecording(f"{file} cannot be written: {reason}") from None
