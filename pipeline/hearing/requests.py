"""What a client asks for is done behind the audio that it sent before."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from pipeline.hearing.microphone import Microphone

T = TypeVar("T")


class RequestsBehindAudio:
    """One call's requests, in order. Whoever listens to the audio says when it has caught up."""

    def __init__(self, microphone: Microphone) -> None:
        self._microphone = microphone
        self._waiting: deque[tuple[int, Callable[[], None], asyncio.Future[Any]]] = deque()
        self._closed = False

    def add(self, action: Callable[[], T]) -> asyncio.Future[T]:
        """Do this once all audio that has come has been listened to. Gives what the action gives; cancelled,
        and nothing is done, when the call ends before or has ended."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if self._closed:
            done.cancel()
            return done

        def act() -> None:
            result = action()
            if not done.done():  # else nobody waits any more
                done.set_result(result)

        self._waiting.append((self._microphone.cut(), act, done))
        self.caught_up()
        return done

    def caught_up(self) -> None:
        """Do what was asked for behind the audio that has been listened to."""
        while self._waiting and self._waiting[0][0] <= self._microphone.end:
            self._waiting.popleft()[1]()

    def close(self) -> None:
        """The call ends."""
        self._closed = True
        for _, _, done in self._waiting:
            done.cancel()
        self._waiting.clear()
