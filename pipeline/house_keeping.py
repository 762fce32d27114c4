"""The small things people expect of a call: greeting, are-you-there, goodbye, time limit, hold phrase,
keypad."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from pipeline.interruption import words
from pipeline.mouth import Answer
from pipeline.reply import StageFailed
from pipeline.workers import CancelToken

if TYPE_CHECKING:
    from pipeline.call import Call

_KEYPAD_PAUSE = 1.5
"""Seconds without a key after which the digits pressed so far are a turn; `#` ends it at once."""

_KEYPAD_LIMIT = 40

_TICK = 0.25
"""Seconds between looks at the deadlines; they are long, so a coarse look is exact enough."""


def says_goodbye(text: str, goodbyes: tuple[str, ...]) -> bool:
    """Whether the text ends with one of the farewells, as whole words."""
    said = words(text)
    return any(said[-len(phrase) :] == phrase for phrase in map(words, goodbyes) if phrase)


class HouseKeeping:
    """Watches one call's deadlines on the loop's clock."""

    def __init__(self, call: Call, max_seconds: float) -> None:
        self._call = call
        self._max_seconds = max_seconds
        self._asked = 0
        self._last_word = 0.0
        self._end_after: tuple[Answer, str] | None = None
        self._digits = ""
        self._digits_due: float | None = None

    async def watch(self) -> None:
        """Greet, then look after silence, the time limit and the keypad until the call ends."""
        call = self._call
        began = self._last_word = call.now()
        call.say(call.agent.greeting)
        while True:
            await asyncio.sleep(_TICK)
            now = call.now()
            if self._digits_due is not None and now >= self._digits_due:
                self._send_digits()
            if now - began >= self._max_seconds:
                call.end("max_length")
            turn = call.listener.turn
            if call.mouth.answer is not None or (turn is not None and turn.told):
                self._last_word = now
            elif turn is None and self._end_after is None:
                self._look_after_silence(now)

    def caller_spoke(self) -> None:
        """A turn was committed."""
        self._asked = 0
        self._last_word = self._call.now()

    def goodbye_after(self, answer: Answer) -> None:
        """If the caller took leave, the call ends once this answer has been heard."""
        if says_goodbye(answer.caller_text, self._call.agent.goodbyes):
            self._end_after = (answer, "goodbye")

    def answer_over(self, answer: Answer) -> None:
        """End the call if this was its last answer; a caller who interrupts it keeps the call alive."""
        if self._end_after is not None and self._end_after[0] is answer:
            reason = self._end_after[1]
            self._end_after = None
            if answer.status != "interrupted":
                self._call.end(reason)

    async def hold(self, answer: Answer) -> None:
        """Say the hold phrase when the first audio of an answer is late. Once an answer.

        Raises StageFailed.
        """
        call, track = self._call, answer.reply.track
        if not call.agent.hold_phrase.strip():
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(call.agent.hold_after_ms / 1000):
                await track.more_than(0)
                return
        token = CancelToken()
        voice, phrase = call.stages.voice, call.agent.hold_phrase
        try:
            chunks = await call.stages.workers.run(
                "tts", lambda: list(voice.synthesise(phrase, cancelled=token))
            )
        except Exception as error:
            raise StageFailed("tts", error) from error
        if track.samples == 0 and not track.complete:
            for chunk in chunks:
                track.append_filler(chunk.samples)

    def digit(self, digit: str) -> None:
        """Collect keys; a turn of its own when the caller stops pressing."""
        if digit == "#" and self._digits:
            self._send_digits()
        elif digit in set("0123456789*#") and len(self._digits) < _KEYPAD_LIMIT:
            self._digits += digit
            self._digits_due = self._call.now() + _KEYPAD_PAUSE

    def _send_digits(self) -> None:
        digits, self._digits, self._digits_due = self._digits, "", None
        self._call.say_text("(on the keypad) " + " ".join(digits))

    def _look_after_silence(self, now: float) -> None:
        """Noises and coughs are no words: a caller who says none for long is asked, and then left."""
        call, silence = self._call, self._call.agent.silence
        if now - self._last_word < silence.after_seconds:
            return
        self._last_word = now
        if self._asked < silence.times:
            self._asked += 1
            call.say(silence.text)
        elif (farewell := call.say(silence.farewell)) is not None:
            self._end_after = (farewell, "silence")
        else:
            call.end("silence")
