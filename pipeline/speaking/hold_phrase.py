"""What is said when the first audio of an answer is late."""

from __future__ import annotations

import asyncio
import contextlib

from pipeline.speaking.reply_sound import ReplySound
from pipeline.stages import StageFailed
from pipeline.workers import CancelToken, Workers
from tts.voice import Voice


async def say_when_late(
    sound: ReplySound, phrase: str, after_ms: float, *, voice: Voice, workers: Workers
) -> None:
    """Put the phrase in front of an answer that has no audio after `after_ms`. Raises StageFailed."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(after_ms / 1000):
            await sound.more_than(0)
            return
    token = CancelToken()
    try:
        chunks = await workers.run("tts", lambda: list(voice.synthesise(phrase, cancelled=token)))
    except Exception as error:
        raise StageFailed("tts", error) from error
    if sound.samples == 0 and not sound.complete:
        for chunk in chunks:
            sound.append_filler(chunk.samples)
