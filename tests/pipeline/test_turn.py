"""When a turn's recognition steps are due, and which of them the end of speech lets finish."""

from __future__ import annotations

import asyncio
from typing import cast

import numpy as np
import pytest

from fixtures.fakes import Script, ScriptedRecogniser, ScriptedUtterance
from fixtures.virtual_time import run
from pipeline.audio_clock import RATE
from pipeline.stages import Listening
from pipeline.turn import Turn


def turn_with(seconds: float) -> Turn:
    utterance = ScriptedUtterance(ScriptedRecogniser(Script(), lambda: 0.0))
    turn = Turn(1, 1, 0, 0, cast(Listening, utterance), lambda event: None)
    turn.feed(np.zeros(round(seconds * RATE), np.float32))
    return turn


async def is_due(turn: Turn, seconds: float = 0.6) -> bool:
    step = asyncio.ensure_future(turn.step_is_due(seconds))
    await asyncio.sleep(0)
    due = step.done()
    step.cancel()
    return due


@pytest.mark.parametrize(
    ("fed", "quiet", "due"),
    [(0.7, False, True), (0.3, False, False), (0.3, True, True), (0.05, True, False)],
)
def test_a_step_is_due_early_when_the_caller_falls_quiet(fed: float, quiet: bool, due: bool) -> None:
    async def scene() -> None:
        turn = turn_with(fed)
        turn.sounds(quiet=quiet)
        assert await is_due(turn) is due

    run(scene())


def test_a_quiet_frame_wakes_the_waiting_step() -> None:
    async def scene() -> None:
        turn = turn_with(0.3)
        step = asyncio.ensure_future(turn.step_is_due(0.6))
        await asyncio.sleep(0)
        assert not step.done()
        turn.sounds(quiet=True)
        await asyncio.wait_for(step, 1.0)

    run(scene())


@pytest.mark.parametrize(("quiet_since", "goes_on"), [(0.3, True), (0.5, True), (0.6, False)])
def test_the_end_of_speech_lets_a_step_finish_that_hears_all_of_it(quiet_since: float, goes_on: bool) -> None:
    async def scene() -> None:
        turn = turn_with(0.5)
        turn.sounds(quiet=True)
        await turn.step_is_due(0.6)  # it takes what was fed: half a second
        turn.quiet_since = round(quiet_since * RATE)
        token = turn.step_token
        turn.begin_attempt()
        assert token() is not goes_on
        assert not await is_due(turn)

    run(scene())
