"""The states of a turn, when its recognition passes are due, and which of them the end of speech lets
finish."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np
import pytest

from fixtures.fakes import Script, ScriptedRecogniser, ScriptedUtterance
from fixtures.virtual_time import run
from pipeline.audio import CALLER_RATE
from pipeline.turns.caller_speech import CallerSpeech
from pipeline.turns.turn import IllegalTransition, Turn, TurnState


def speech_of(seconds: float) -> CallerSpeech:
    speech = CallerSpeech(ScriptedUtterance(ScriptedRecogniser(Script(), lambda: 0.0)))
    speech.feed(np.zeros(round(seconds * CALLER_RATE), np.float32))
    return speech


def turn_with(speech: CallerSpeech | None) -> Turn:
    return Turn(1, 1, 0, 0, speech, lambda event: None)


async def is_due(speech: CallerSpeech, seconds: float = 0.6) -> bool:
    due = asyncio.ensure_future(speech.pass_is_due(seconds))
    await asyncio.sleep(0)
    done = due.done()
    due.cancel()
    return done


@pytest.mark.parametrize(
    ("fed", "quiet", "due"),
    [(0.7, False, True), (0.3, False, False), (0.3, True, True), (0.05, True, False)],
)
def test_a_pass_is_due_early_when_the_caller_falls_quiet(fed: float, quiet: bool, due: bool) -> None:
    async def scene() -> None:
        speech = speech_of(fed)
        speech.sounds(quiet=quiet)
        assert await is_due(speech) is due

    run(scene())


def test_a_quiet_frame_wakes_the_waiting_pass() -> None:
    async def scene() -> None:
        speech = speech_of(0.3)
        due = asyncio.ensure_future(speech.pass_is_due(0.6))
        await asyncio.sleep(0)
        assert not due.done()
        speech.sounds(quiet=True)
        await asyncio.wait_for(due, 1.0)

    run(scene())


def test_a_pass_that_does_not_pay_waits_unless_the_agent_does() -> None:
    class Costly(ScriptedUtterance):
        due = False

    async def scene() -> None:
        speech = CallerSpeech(Costly(ScriptedRecogniser(Script(), lambda: 0.0)))
        speech.feed(np.zeros(CALLER_RATE, np.float32))
        assert not await is_due(speech)
        turn_with(speech).yield_floor()
        assert await is_due(speech)

    run(scene())


@pytest.mark.parametrize(("quiet_since", "goes_on"), [(0.3, True), (0.5, True), (0.6, False)])
def test_the_end_of_speech_lets_a_pass_finish_that_hears_all_of_it(quiet_since: float, goes_on: bool) -> None:
    async def scene() -> None:
        speech = speech_of(0.5)
        turn = turn_with(speech)
        speech.sounds(quiet=True)
        await speech.pass_is_due(0.6)  # it takes what was fed: half a second
        turn.fall_quiet(round(quiet_since * CALLER_RATE))
        token = speech.pass_token
        turn.begin_revision()
        assert token() is not goes_on
        assert not await is_due(speech)

    run(scene())


S = TurnState
WAYS: dict[str, tuple[Callable[[Turn], object], dict[TurnState, TurnState]]] = {
    "fall_quiet": (
        lambda turn: turn.fall_quiet(100),
        {S.SPEAKING: S.QUIET, S.OVER_AGENT: S.OVER_AGENT_QUIET},
    ),
    "go_on": (
        lambda turn: turn.go_on(300.0),
        {S.QUIET: S.SPEAKING, S.JUDGED: S.SPEAKING, S.OVER_AGENT_QUIET: S.OVER_AGENT},
    ),
    "yield_floor": (
        lambda turn: turn.yield_floor(),
        {
            S.SPEAKING: S.OVER_AGENT,
            S.QUIET: S.OVER_AGENT_QUIET,
            S.OVER_AGENT: S.OVER_AGENT,
            S.OVER_AGENT_QUIET: S.OVER_AGENT_QUIET,
        },
    ),
    "take_floor": (
        lambda turn: turn.take_floor(),
        {S.OVER_AGENT: S.SPEAKING, S.OVER_AGENT_QUIET: S.QUIET},
    ),
    "correct_end": (
        lambda turn: turn.correct_end(50),
        {S.QUIET: S.QUIET, S.JUDGED: S.JUDGED, S.OVER_AGENT_QUIET: S.OVER_AGENT_QUIET},
    ),
    "judge": (lambda turn: turn.judge(500.0), {S.QUIET: S.JUDGED}),
    "commit": (lambda turn: turn.commit(), {S.QUIET: S.COMMITTED, S.JUDGED: S.COMMITTED}),
    "dismiss": (
        lambda turn: turn.dismiss(),
        dict.fromkeys([S.SPEAKING, S.OVER_AGENT, S.OVER_AGENT_QUIET, S.QUIET, S.JUDGED], S.DISMISSED),
    ),
}


def turn_in(state: TurnState) -> Turn:
    """A turn that has been brought into a state by its transitions."""
    turn = turn_with(speech_of(0.5))
    if state in (S.OVER_AGENT, S.OVER_AGENT_QUIET):
        turn.yield_floor()
    if state not in (S.SPEAKING, S.OVER_AGENT):
        turn.fall_quiet(80)
        turn.begin_revision()
    if state is S.JUDGED:
        turn.judge(400.0)
    elif state is S.COMMITTED:
        turn.commit()
    elif state is S.DISMISSED:
        turn.dismiss()
    assert turn.state is state
    return turn


@pytest.mark.parametrize("state", list(TurnState))
@pytest.mark.parametrize("way", WAYS)
def test_a_turn_goes_the_ways_it_has_and_no_others(way: str, state: TurnState) -> None:
    act, leads = WAYS[way]
    turn = turn_in(state)
    if state in leads:
        act(turn)
        assert turn.state is leads[state]
    else:
        with pytest.raises(IllegalTransition, match=f"{way} while {state.value}"):
            act(turn)
        assert turn.state is state


def test_a_turn_that_goes_on_refutes_the_revision_under_way() -> None:
    turn = turn_with(speech_of(0.5))
    turn.fall_quiet(8000)
    refuted = turn.begin_revision()
    assert turn.alive(refuted)
    turn.go_on(250.0)
    assert (turn.revision, turn.refutations, turn.longest_pause_ms) == (2, 1, 250.0)
    assert turn.under_way is None
    assert turn.quiet_since is None
    assert not turn.alive(refuted)


def test_a_pause_in_which_no_answer_was_begun_makes_no_revision() -> None:
    turn = turn_with(speech_of(0.5))
    turn.fall_quiet(8000)
    turn.go_on(40.0)
    assert (turn.revision, turn.refutations) == (1, 0)


def test_a_dismissed_turn_stops_its_work() -> None:
    turn = turn_with(speech_of(0.5))
    turn.fall_quiet(8000)
    revision = turn.begin_revision()
    turn.dismiss()
    assert revision.token()
    assert not turn.alive(revision)


def test_a_typed_turn_begins_in_silence() -> None:
    turn = turn_with(None)
    assert turn.state is S.QUIET
    turn.begin_revision()
    turn.commit()
    assert turn.state is S.COMMITTED
