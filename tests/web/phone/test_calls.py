"""Whole telephone calls over each carrier, in virtual time."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from fixtures.fakes import QUIET, Parrot
from fixtures.noise_reader import NoiseReader, what_was_heard
from fixtures.phone_scene import PhoneScene
from fixtures.virtual_time import run
from pipeline.agent import Agent, Interruptions
from web.phone.bridge import PhoneFrontEnd
from web.phone.simulator.carriers import SHAPES
from web.phone.simulator.line import MemoryLine, Network
from web.phone.simulator.shape import Dialled
from web.phone.twilio import Twilio
from web.switchboard import Switchboard

ALL = sorted(SHAPES)
HELLO = {"speech": [(0.5, 1.5)], "words": [(" Hello", 1.0), (" there.", 1.4)]}


@pytest.mark.parametrize("carrier", ALL)
def test_a_question_is_answered(carrier: str) -> None:
    scene = run(PhoneScene(carrier, **HELLO, network=Network(latency=0.03, jitter=0.01)).play())
    assert scene.phone.refused == []
    record = scene.service.records[0]
    assert record.caller_text == "Hello there."
    assert record.heard_text == record.reply_text == "You said Hello there. Is there more?"
    assert record.status == "completed"
    assert record.origin == carrier
    spoken = len(record.reply_text) * 0.06
    assert len(scene.phone.played) * 0.02 == pytest.approx(spoken, abs=0.06)


@pytest.mark.parametrize(("jitter", "late_frames"), [(0.0, 0), (0.05, 3)])
@pytest.mark.parametrize("carrier", ALL)
def test_the_reply_is_played_without_a_gap(carrier: str, jitter: float, late_frames: int) -> None:
    """Once a network's jitter has passed, that is: nobody has anything to play while the second frame is
    late."""
    scene = run(PhoneScene(carrier, **HELLO, network=Network(latency=0.05, jitter=jitter)).play())
    gaps = np.diff(scene.heard_at())
    assert gaps[late_frames:].max() == pytest.approx(0.02, abs=0.001)
    assert gaps[:late_frames].sum() <= 0.02 * late_frames + jitter + 0.001


LONG = "One two three four five six seven eight nine ten eleven twelve thirteen fourteen."
ASKED = {"speech": [(0.5, 1.5)], "words": [(" Count", 1.0), (" please.", 1.4)]}


@pytest.mark.parametrize("carrier", ["twilio", "telnyx", "plivo", "asterisk"])
def test_an_interruption_empties_the_carriers_buffer(carrier: str) -> None:
    scene = PhoneScene(
        carrier,
        speech=[(0.5, 1.5), (4.0, 5.5)],
        words=[(" Count", 1.0), (" please.", 1.4), (" Wait", 4.4), (" stop.", 5.3)],
        language=Parrot(lambda text: LONG if "Count" in text else "Yes?"),
        voice=NoiseReader(),
        network=Network(latency=0.04, jitter=0.02),
        seconds=9.0,
    )
    run(scene.play())
    first, second = scene.service.records[:2]
    assert (first.status, second.caller_text) == ("interrupted", "Wait stop.")
    last = max(at for at in scene.heard_at() if at < 5.5) + 0.02
    assert last - 4.0 <= 0.25
    cut = [one for one in scene.phone.played if one.at < 5.5]
    heard = what_was_heard(scene.voice, cut, [LONG])
    really = [word for word, times in heard.words if times]
    assert abs(len(first.heard_text.split()) - len(really)) <= 1


@pytest.mark.parametrize("carrier", ["twilio", "telnyx", "plivo", "asterisk"])
def test_a_cough_stops_the_agent_only_for_a_moment(carrier: str) -> None:
    scene = PhoneScene(
        carrier,
        speech=[(0.5, 1.5), (4.0, 4.2)],
        words=[(" Count", 1.0), (" please.", 1.4)],
        language=Parrot(lambda text: LONG),
        voice=NoiseReader(),
        network=Network(latency=0.04, jitter=0.02),
        seconds=12.0,
    )
    run(scene.play())
    record = scene.service.records[0]
    assert record.status == "completed"
    heard = what_was_heard(scene.voice, scene.phone.played, [LONG])
    assert [times for _, times in heard.words] == [1] * len(heard.words)
    silent = np.diff(scene.heard_at()).max()
    assert silent > 0.3
    assert scene.phone.clears == (0 if carrier == "asterisk" else 1)


def test_marks_that_come_back_on_a_clear_are_not_playback() -> None:
    """Twilio returns every mark at once: without the pause the heard text would be all that was sent."""
    scene = PhoneScene(
        speech=[(0.5, 1.5), (2.35, 4.0)],
        words=[(" Count", 1.0), (" please.", 1.4), (" No", 2.9), (" stop.", 3.4)],
        language=Parrot(lambda text: LONG if "Count" in text else "Yes?"),
        voice=NoiseReader(),
        seconds=8.0,
    )
    run(scene.play())
    cut = [one for one in scene.phone.played if one.at < 4.0]
    heard = what_was_heard(scene.voice, cut, [LONG])
    really = [word for word, times in heard.words if times]
    assert (
        scene.service.records[0].heard_text.split()
        == really[: len(scene.service.records[0].heard_text.split())]
    )
    assert len(really) - len(scene.service.records[0].heard_text.split()) in (0, 1)


def test_an_asterisk_without_marks_is_believed_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """As its versions before 20.18, 22.8 and 23.2 are."""
    monkeypatch.setattr(SHAPES["asterisk"], "marked", lambda shape, name: '{"event": "MEDIA_XON"}')
    scene = PhoneScene(
        "asterisk",
        speech=[(0.5, 1.5), (2.35, 4.0), (6.0, 7.0)],
        words=[(" Count", 1.0), (" please.", 1.4), (" No", 2.9), (" stop.", 3.4), (" Goodbye.", 6.9)],
        language=Parrot(lambda text: LONG if "Count" in text else "Yes?" if "No" in text else "Goodbye."),
        voice=NoiseReader(),
        seconds=20.0,
    )
    run(scene.play())
    cut = [one for one in scene.phone.played if one.at < 4.0]
    really = [word for word, times in what_was_heard(scene.voice, cut, [LONG]).words if times]
    believed = scene.service.records[0].heard_text.split()
    assert believed == really[: len(believed)]
    assert len(really) - len(believed) in (0, 1)
    assert len(scene.hung_up) == 1


@pytest.mark.parametrize("carrier", ALL)
def test_keys_are_a_turn(carrier: str) -> None:
    scene = PhoneScene(
        carrier,
        actions=[(1.0 + n / 5, lambda scene, key=key: scene.phone.press(key)) for n, key in enumerate("42#")],
        seconds=6.0,
    )
    run(scene.play())
    assert scene.service.records[0].caller_text == "(on the keypad) 4 2"


@pytest.mark.parametrize("carrier", ALL)
def test_the_document_chooses_agent_and_names_the_caller(carrier: str) -> None:
    dialled = Dialled(caller="+15550100123", agent="test", parameters=(("order", "42"),))
    scene = run(PhoneScene(carrier, dialled=dialled, seconds=1.0).play())
    asked = scene.service.asked[0]
    assert asked["agent"] == "test"
    assert asked["caller"].lstrip("+") == "15550100123"
    assert asked["variables"] == {"order": "42"}


@pytest.mark.parametrize("carrier", ALL)
def test_a_goodbye_is_heard_to_its_end_and_then_the_call_is_hung_up(carrier: str) -> None:
    scene = PhoneScene(
        carrier,
        speech=[(0.5, 1.2)],
        words=[(" Goodbye.", 1.1)],
        language=Parrot(lambda text: "Goodbye then."),
        voice=NoiseReader(),
        network=Network(latency=0.08),
        seconds=20.0,
    )
    run(scene.play())
    assert scene.ended_at < 6.0
    assert len(scene.hung_up) == 1
    assert scene.line.close_code == 1000
    assert len(scene.phone.played) * 0.02 == pytest.approx(len("Goodbye then.") * 0.06, abs=0.05)


@pytest.mark.parametrize("carrier", ALL)
def test_a_caller_who_hangs_up_ends_the_call_once(carrier: str) -> None:
    scene = run(PhoneScene(carrier, **ASKED, language=Parrot(lambda text: LONG), seconds=3.0).play())
    assert scene.service.records[0].status == "interrupted"
    assert scene.hung_up == []
    assert scene.served_until < 3.1, "nothing is waited for on a line that is dead"


def test_a_busy_service_refuses_the_stream() -> None:
    scene = run(PhoneScene(busy=True).play())
    assert scene.line.close_code == 1013
    assert scene.service.opened == []


def test_an_unknown_agent_refuses_the_stream() -> None:
    scene = run(PhoneScene(dialled=Dialled(agent="nobody")).play())
    assert scene.line.close_code == 1013


def test_lost_and_swapped_frames_keep_the_calls_time() -> None:
    scene = PhoneScene(
        "telnyx",
        **HELLO,
        network=Network(latency=0.05, jitter=0.02, loss=0.02, swapped=0.05, seed=3),
        seconds=9.0,
    )
    run(scene.play())
    assert scene.service.records[0].caller_text == "Hello there."


def test_an_agent_that_may_not_be_interrupted_goes_on() -> None:
    scene = PhoneScene(
        speech=[(0.5, 1.5), (4.0, 5.0)],
        words=[(" Count", 1.0), (" please.", 1.4), (" Stop.", 4.6)],
        agent=Agent(name="test", persona="Be brief.", silence=QUIET, interruptions=Interruptions(mode="off")),
        language=Parrot(lambda text: LONG),
        seconds=12.0,
    )
    run(scene.play())
    assert scene.service.records[0].status == "completed"
    assert scene.phone.clears == 0


def test_a_carrier_that_stops_reading_is_given_up_after_the_send_timeout(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = PhoneScene(
        agent=Agent(name="test", persona="Be brief.", greeting=LONG * 4, silence=QUIET), seconds=60.0
    )
    scene.actions = [(1.0, lambda scene: scene.phone.stop_reading())]
    run(scene.play())
    assert 5.0 < scene.served_until < 15.0
    assert f"call {scene.call.id}: nothing was read for 5 s" in caplog.text


def test_a_stream_that_never_starts_is_closed() -> None:
    async def act() -> MemoryLine:
        line = MemoryLine()
        front_end = PhoneFrontEnd(Switchboard())
        await line.link.send('{"event":"connected","protocol":"Call"}')
        began = asyncio.get_running_loop().time()
        await front_end.serve(line, Twilio())
        assert asyncio.get_running_loop().time() - began == pytest.approx(10.0)
        return line

    assert run(act()).close_code == 1008
