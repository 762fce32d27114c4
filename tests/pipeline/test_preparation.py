"""What the settings need on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.config import Settings
from pipeline.loading import preparation
from pipeline.models import catalogue

ALWAYS = {"silero-vad-v6", "smart-turn-v3.2"}


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({}, {"whisper-base", "qwen2.5-coder-1.5b", "hibari"}),
        (
            {"asr_model": "whisper-tiny.en", "llm": "small", "draft_model": "smallest"},
            {"whisper-tiny.en", "qwen2.5-coder-0.5b", "smollm2-135m", "hibari"},
        ),
        ({"llm": "https://example.com/v1", "voice": "piper:piper-joe"}, {"whisper-base", "piper-joe"}),
        ({"llm": ".", "asr_model": ".", "voice": "piper:/voices/mine.onnx"}, set()),
    ],
)
def test_the_models_that_the_settings_name(settings: dict[str, Any], names: set[str]) -> None:
    assert {artifact.name for artifact in preparation.models(Settings(**settings))} == names | ALWAYS


def test_the_default_settings_need_what_set_up_pulls() -> None:
    assert preparation.models(Settings()) == catalogue.defaults()


def test_without_a_compiler_the_reason_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REJOINDER_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert "no C++ compiler was found" in preparation.build_kernel(lambda message: None)
    assert not preparation.kernel_built()
