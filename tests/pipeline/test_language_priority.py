"""A draft never delays a committed reply: on the real worker threads, by schedules that the test dictates."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import pytest

from fixtures.fakes import Detector, Scene, SlowReader
from fixtures.virtual_time import run
from llm.language_model import Delta, Finished, Message, ReplyEvent, Sampling
from llm.stats import ReplyStats
from pipeline.language_priority import LanguagePriority
from pipeline.speaking.reply import Reply
from pipeline.telemetry.timeline import Timeline
from pipeline.workers import Workers
from tests.machine import PATIENCE


class Steps:
    """A language stage of three passes; before a pass it waits for `gates[pass]`, if there is one.

    `passes` keeps all passes of all replies in order; `began` is set after the first.
    """

    def __init__(self, name: str, passes: list[str], gates: dict[int, threading.Event] | None = None) -> None:
        self._name = name
        self._passes = passes
        self._gates = gates or {}
        self._began = threading.Event()

    async def first_pass(self) -> None:
        assert await asyncio.to_thread(self._began.wait, PATIENCE)

    def reply(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        *,
        draft: Sequence[int] = (),
        cancelled: Callable[[], bool],
    ) -> Iterator[ReplyEvent]:
        for number in range(3):
            if number in self._gates:
                assert self._gates[number].wait(PATIENCE)
            if cancelled():
                yield Finished("cancelled", (), "", ReplyStats())
                return
            self._passes.append(f"{self._name}{number}")
            self._began.set()
            yield Delta("word ")
        yield Finished("eos", (), "word word word ", ReplyStats())


@contextmanager
def stage(threads: int = 4) -> Iterator[tuple[Workers, LanguagePriority]]:
    workers = Workers({"llm": threads})
    try:
        yield workers, LanguagePriority()
    finally:
        workers.close()


def generating(
    workers: Workers, priority: LanguagePriority, steps: Steps, *, committed: bool
) -> tuple[Reply, asyncio.Task[None]]:
    reply = Reply("r", workers=workers, voice=SlowReader(), priority=priority, timeline=Timeline())
    if committed:
        reply.release()
    return reply, asyncio.ensure_future(reply.generate(steps, [], Sampling(), ()))


@dataclass
class Waiting:
    """A committed reply that is held up after its first pass, and a draft that waits for it."""

    priority: LanguagePriority
    committed: Reply
    draft: Reply
    drafting: asyncio.Task[None]


@asynccontextmanager
async def waiting_draft(passes: list[str]) -> AsyncIterator[Waiting]:
    """In the end the committed reply goes on, and both are over."""
    go_on = threading.Event()
    with stage() as (workers, priority):
        steps = Steps("c", passes, {1: go_on})
        committed, making = generating(workers, priority, steps, committed=True)
        await steps.first_pass()
        draft, drafting = generating(workers, priority, Steps("d", passes), committed=False)
        await asyncio.sleep(0)
        yield Waiting(priority, committed, draft, drafting)
        go_on.set()
        await asyncio.gather(making, drafting)


def test_a_draft_waits_until_the_committed_reply_is_made() -> None:
    passes: list[str] = []

    async def both() -> None:
        async with waiting_draft(passes) as waiting:
            assert waiting.priority.taken
        assert not waiting.priority.taken

    asyncio.run(both())
    assert passes == ["c0", "c1", "c2", "d0", "d1", "d2"]


def test_a_draft_under_way_stands_aside_between_passes() -> None:
    passes: list[str] = []
    taken, go_on = threading.Event(), threading.Event()

    async def both() -> None:
        with stage() as (workers, priority):
            drafting = Steps("d", passes, {1: taken})
            _, draft = generating(workers, priority, drafting, committed=False)
            await drafting.first_pass()
            steps = Steps("c", passes, {2: go_on})
            _, committed = generating(workers, priority, steps, committed=True)
            await steps.first_pass()
            taken.set()
            go_on.set()
            await asyncio.gather(committed, draft)

    asyncio.run(both())
    assert [name for name in passes if name != "d0"] == ["c0", "c1", "c2", "d1", "d2"]


def test_a_waiting_draft_goes_on_when_it_is_committed_itself() -> None:
    passes: list[str] = []

    async def both() -> None:
        async with waiting_draft(passes) as waiting:
            waiting.draft.release()
            await waiting.drafting
            waiting.committed.cancel()

    asyncio.run(both())
    assert passes == ["c0", "d0", "d1", "d2"]


def test_a_waiting_draft_can_be_cancelled() -> None:
    passes: list[str] = []

    async def both() -> None:
        async with waiting_draft(passes) as waiting:
            waiting.draft.cancel()
            await waiting.drafting
            assert waiting.draft.finished is not None
            assert waiting.draft.finished.reason == "cancelled"

    asyncio.run(both())
    assert passes == ["c0", "c1", "c2"]


def test_a_stage_that_batches_makes_drafts_beside_committed_replies() -> None:
    priority = LanguagePriority(at_once=2)
    with priority.making("a", committed=True):
        assert not priority.taken
        with priority.making("b", committed=False):
            assert not priority.taken
            priority.commit("b")
            assert priority.taken
        assert not priority.taken
    priority.commit("a")
    assert not priority.taken, "a reply that is made takes nothing"


# ---- what a call does when there is no room


def question(reason: list[tuple[float, str | None]], **changes: object) -> Scene:
    """The caller asks from 1.0 to 2.0 s; `reason` says from when on there is which reason not to draft."""

    def no_draft_because() -> str | None:
        now = asyncio.get_running_loop().time()
        return next(why for since, why in reversed(reason) if now >= since)

    values: dict[str, object] = {
        "speech": [(1.0, 2.0)],
        "words": [(" What", 1.2), (" time", 1.5), (" is", 1.7), (" it?", 2.0)],
        "seconds": 9.0,
        "detector": Detector(0.6),
        "no_draft_because": no_draft_because,
    }
    return Scene(**values | changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("reason", ["calls", "committed"])
def test_without_room_nothing_is_drafted_and_the_log_says_why(reason: str) -> None:
    scene = question([(0.0, reason)])
    run(scene.play())
    (record,) = scene.records
    assert record.marks["llm_start"] >= record.marks["commit"]
    assert (record.draft_fate, record.extra["draft_skipped"]) == ("none", reason)
    assert record.status == "completed"


def test_a_draft_begins_as_soon_as_there_is_room() -> None:
    scene = question([(0.0, "committed"), (2.25, None)])
    run(scene.play())
    (record,) = scene.records
    assert record.marks["soft_end"] < record.marks["llm_start"] < record.marks["commit"]
    assert record.extra["draft_skipped"] is None


def test_a_caller_who_pauses_for_ever_is_not_drafted_for_for_ever() -> None:
    pauses = 14
    speech = [(1.0 + n, 1.6 + n) for n in range(pauses)]
    words = [(f" word{n}", 1.6 + n) for n in range(pauses)]
    scene = question([(0.0, None)], speech=speech, words=words, detector=Detector(0.0), seconds=25.0)
    run(scene.play())
    (record,) = scene.records
    assert len(record.caller_text.split()) == pauses
    assert len(scene.language.prompts) < pauses
    assert record.extra["draft_skipped"] == "retries"
