"""`rejoinder call` against a running server: the caller's recording and the answer to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import soundfile
from typer.testing import CliRunner

from asr.recogniser import Partial, Transcript, Word
from pipeline.config import Settings
from pipeline.telemetry.tracing import TracingUnavailable
from tests.web.phone.served import phone_settings, serving
from web.cli import main
from web.commands.call import CallNotMade, _call
from web.phone.simulator.line import Network

SPEECH = np.full(14_400, 0.9, np.float32)
"""0.6 s at 24 kHz, as a recording is read."""


class AlwaysHello:
    """Hears the same word in everything."""

    due = False

    def open(self, *, hotwords: Sequence[str] = (), alone: Sequence[str] = ()) -> AlwaysHello:
        return self

    def feed(self, audio: np.ndarray) -> None:
        """The same whatever it is."""

    def step(self, cancelled: Callable[[], bool]) -> Partial:
        return Partial((), "Hello.")

    def finish(self, cancelled: Callable[[], bool]) -> Transcript:
        return Transcript("Hello.", (Word("Hello.", 0.0, 0.5, 1.0),), 0.6)


def test_a_recording_is_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "heard.wav"

    async def talk() -> None:
        async with serving(phone_settings(phone_unsigned=True), recogniser=AlwaysHello()) as served:
            recordings = [(Path("hello.wav"), SPEECH)]
            network = Network(latency=0.01)
            await _call(Settings(), "twilio", served.address(""), recordings, network, saved)

    asyncio.run(talk())
    heard, rate = soundfile.read(saved)
    assert rate == 8000
    printed = capsys.readouterr().out
    assert "hello.wav: answered after" in printed
    assert np.abs(heard).max() > 0.05


@pytest.mark.parametrize("url", ["ws://localhost:port", "ws://[::1", "http://localhost"])
def test_an_address_that_is_none_is_named(url: str) -> None:
    with pytest.raises(CallNotMade, match="no call to"):
        asyncio.run(_call(Settings(), "twilio", url, [], Network(), None))


@pytest.mark.parametrize(("settings", "reason"), [(phone_settings(), "not set up"), (None, "no call to")])
def test_a_call_that_does_not_come_about_says_why(settings: Settings | None, reason: str) -> None:
    async def talk() -> None:
        if settings is None:
            await _call(Settings(), "twilio", "ws://127.0.0.1:1", [], Network(), None)
        else:
            async with serving(settings) as served:
                await _call(Settings(), "twilio", served.address(""), [], Network(), None)

    with pytest.raises(CallNotMade, match=reason):
        asyncio.run(talk())


def test_a_call_that_cannot_be_saved_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[object] = []

    async def call(*given: object) -> None:
        begun.append(given)

    monkeypatch.setattr("web.commands.call._call", call)
    hello = tmp_path / "hello.wav"
    soundfile.write(hello, SPEECH, 24_000)
    result = CliRunner().invoke(main, ["call", str(hello), "--save", str(tmp_path / "no" / "x.wav")])
    assert result.exit_code == 1
    assert "there is no folder" in result.output
    assert not begun
    result = CliRunner().invoke(main, ["call", str(hello), "--save", str(tmp_path / "heard.noise")])
    assert result.exit_code == 1
    assert "cannot be written" in result.output
    assert (
        CliRunner().invoke(main, ["call", str(hello), "--save", str(tmp_path / "heard.wav")]).exit_code == 0
    )
    assert len(begun) == 1


def test_what_stops_the_server_of_a_call_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(settings: Settings) -> None:
        raise TracingUnavailable("install the extra")

    monkeypatch.setattr("web.commands.call.Server", unavailable)
    soundfile.write(tmp_path / "hello.wav", SPEECH, 24_000)
    result = CliRunner().invoke(main, ["call", str(tmp_path / "hello.wav")])
    assert result.exit_code == 1
    assert "install the extra" in result.output
