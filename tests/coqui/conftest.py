"""Voices on tiny checkpoints, loaded by the real package. Only `make test-coqui` has it; without it, nothing
here is run."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tts.coqui import CoquiVoice

collect_ignore_glob = [] if importlib.util.find_spec("TTS") else ["test_*.py"]


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each tiny model's folder, and a speaker's recording."""
    from tests.coqui import tiny

    root = tmp_path_factory.mktemp("coqui")
    recording = root / "speaker.wav"
    noise = np.random.default_rng(0).standard_normal(64_000).astype(np.float32)
    soundfile.write(recording, 0.1 * noise, 16_000)
    return {
        "vits": tiny.vits(root / "vits"),
        "vits-speakers": tiny.vits(root / "vits-speakers", speakers=("ann", "bob")),
        "xtts": tiny.xtts(root / "xtts"),
        "xtts-speakers": tiny.xtts(root / "xtts-speakers", speakers=("ann", "bob")),
        "recording": recording,
    }


@pytest.fixture(scope="session")
def vits(folders: dict[str, Path]) -> CoquiVoice:
    return CoquiVoice(str(folders["vits"]))


@pytest.fixture(scope="session")
def xtts(folders: dict[str, Path]) -> CoquiVoice:
    return CoquiVoice(str(folders["xtts"]), speaker=str(folders["recording"]))


@pytest.fixture(params=["vits", "xtts"])
def voice(request: pytest.FixtureRequest) -> CoquiVoice:
    found: CoquiVoice = request.getfixturevalue(request.param)
    return found
