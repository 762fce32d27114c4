"""The queue between a socket's reader and a call's ears, in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

from fixtures.virtual_time import run
from web.paced_audio import PacedAudio

RATE = 16_000


class Ears:
    """What a call was told, and when, in seconds."""

    def __init__(self, **limits: Any) -> None:
        self.heard = np.zeros(0, np.float32)
        self.told: list[tuple[str, float, float]] = []
        self.paced = PacedAudio(self.hear, **limits)

    def hear(self, audio: np.ndarray) -> None:
        self.heard = np.concatenate([self.heard, audio])

    async def command(self, name: str) -> None:
        """Put a command; it notes how much had been heard before it."""

        async def note() -> None:
            self.told.append((name, self.heard.size / RATE, asyncio.get_running_loop().time()))

        await self.paced.behind(note)


@contextlib.asynccontextmanager
async def pacing(**limits: Any) -> AsyncIterator[Ears]:
    ears = Ears(**limits)
    running = asyncio.create_task(ears.paced.run())
    yield ears
    running.cancel()
    await asyncio.wait([running])


def seconds(length: float) -> np.ndarray:
    return np.arange(round(length * RATE), dtype=np.float32)


@pytest.mark.parametrize("chunk", [0.0001, 0.02, 0.5, 12.0])
def test_a_command_comes_behind_all_the_audio_before_it(chunk: float) -> None:
    async def play() -> None:
        async with pacing() as ears:
            audio = seconds(3.0)
            size = round(chunk * RATE)
            for start in range(0, audio.size, size):
                ears.paced.put(audio[start : start + size])
            await ears.command("commit")
            ears.paced.put(seconds(1.0))
            await asyncio.sleep(5)
            ((_, heard, at),) = ears.told
            assert heard == 3.0
            assert at == pytest.approx(2.5, abs=0.01), "half a second may run ahead"
            np.testing.assert_array_equal(ears.heard, np.concatenate([audio, seconds(1.0)]))

    run(play())


def test_what_need_not_wait_happens_at_once_and_in_order() -> None:
    async def play() -> None:
        async with pacing() as ears:
            for number in range(20):
                ears.paced.put(seconds(0.1))
                await ears.command(str(number))
                assert ears.told[-1] == (
                    str(number),
                    pytest.approx(0.1 * (number + 1)),
                    pytest.approx(number / 10),
                )
                await asyncio.sleep(0.1)

    run(play())


def test_audio_that_comes_while_a_command_is_carried_out_is_heard_after_it() -> None:
    async def play() -> None:
        async with pacing() as ears:
            going_on = asyncio.Event()

            async def slow() -> None:
                await going_on.wait()
                ears.told.append(("slow", ears.heard.size / RATE, 0.0))

            ears.paced.put(seconds(1.0))
            await ears.paced.behind(slow)
            await asyncio.sleep(1.0)
            ears.paced.put(seconds(0.1))
            await ears.command("second")
            await asyncio.sleep(1.0)
            assert ears.told == []
            going_on.set()
            await asyncio.sleep(0.5)
            assert [(name, heard) for name, heard, _ in ears.told] == [("slow", 1.0), ("second", 1.1)]

    run(play())


def test_clear_forgets_what_waits_but_not_what_was_committed() -> None:
    async def play() -> None:
        async with pacing() as ears:
            ears.paced.put(seconds(12.0))
            await asyncio.sleep(1.0)
            ears.paced.clear()
            assert ears.paced.seconds == 0
            await asyncio.sleep(5.0)
            assert ears.heard.size / RATE == pytest.approx(1.5, abs=0.11)
            before = ears.heard.size / RATE
            ears.paced.put(seconds(8.0))
            await ears.command("commit")
            ears.paced.put(seconds(12.0))
            ears.paced.clear()
            await asyncio.sleep(20.0)
            assert ears.heard.size / RATE - before == pytest.approx(8.0)
            assert [name for name, _, _ in ears.told] == ["commit"]

    run(play())


def test_the_queue_is_bounded_in_audio_and_in_commands() -> None:
    async def play() -> None:
        async with pacing(most_seconds=10.0, most_commands=2) as ears:
            assert ears.paced.has_room(10.0)
            assert not ears.paced.has_room(10.1)
            ears.paced.put(seconds(10.0))
            await ears.command("first")
            assert ears.paced.takes_commands
            await ears.command("second")
            assert not ears.paced.takes_commands
            assert not ears.paced.has_room(1.0)
            await asyncio.sleep(2.0)
            assert ears.paced.has_room(1.0)
            await asyncio.sleep(10.0)
            assert ears.paced.takes_commands
            assert [name for name, _, _ in ears.told] == ["first", "second"]

    run(play())


def test_what_a_command_raises_ends_the_pacing() -> None:
    async def play() -> None:
        ears = Ears()

        async def broken() -> None:
            raise RuntimeError("broken")

        ears.paced.put(seconds(1.0))
        await ears.paced.behind(broken)
        with pytest.raises(RuntimeError, match="broken"):
            await ears.paced.run()

    run(play())
