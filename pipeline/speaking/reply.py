"""One reply being made: sentences of the language stage into the voice. Nothing here sends anything."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from llm.language_model import Delta, Finished, Message, ReplyEvent, Retracted, Sampling, Sentence, Thinking
from pipeline.language_priority import LanguagePriority
from pipeline.speaking.reply_sound import ReplySound
from pipeline.stages import LanguageSession, StageFailed
from pipeline.telemetry.timeline import Timeline
from pipeline.workers import CancelToken, Workers
from tts.voice import Voice, VoiceChunk

log = logging.getLogger("rejoinder.call")

AHEAD_SENTENCES = 2
"""Sentences drafted before commit; the rest waits for the gate, so a refuted draft wastes little."""


@dataclass(slots=True)
class SentenceAudio:
    """A sentence's finished audio, kept so that a redrafted reply need not synthesise it again."""

    chunks: list[VoiceChunk] = field(default_factory=list)


class Reply:
    """Drafts, and after `release` completes, one reply.

    `generate` and `synthesise` run side by side as tasks of the call. Both end by themselves after `cancel`.
    The audio lies on `sound`; whether it may be sent is the caller's business (the commit gate). A reply of
    which nothing can be heard is made once more where that may help.
    """

    def __init__(
        self,
        reply_id: str,
        *,
        workers: Workers,
        voice: Voice,
        priority: LanguagePriority,
        timeline: Timeline,
        reusable: Mapping[str, SentenceAudio] | None = None,
    ) -> None:
        self.id = reply_id
        self.sound = ReplySound(voice.sample_rate)
        self.token = CancelToken()
        self.finished: Finished | None = None
        self.failure: StageFailed | None = None
        self.text = ""
        self.made_again = False
        self.spoken: dict[str, SentenceAudio] = {}
        self._workers = workers
        self._voice = voice
        self._priority = priority
        self._timeline = timeline
        self._reusable = reusable or {}
        self._sentences: asyncio.Queue[str | None] = asyncio.Queue()
        self._released = asyncio.Event()
        self._drafted_sentences = 0
        self._judged = asyncio.Event()  # there is sound, or the voice has come to the end of the sentences
        self._voicing = CancelToken()  # of the sentence that is being voiced

    @property
    def stats(self) -> dict[str, Any]:
        """The language stage's figures, empty for a fixed text or while it runs."""
        return dict(self.finished.stats.as_dict()) if self.finished is not None else {}

    @property
    def ids(self) -> tuple[int, ...]:
        return self.finished.ids if self.finished is not None else ()

    @property
    def message_ids(self) -> tuple[int, ...] | None:
        """The ids of the text, where they are known exactly: nothing but it was generated."""
        return self.ids or None if not self.stats.get("thinking_tokens") else None

    @property
    def cut(self) -> bool:
        """Whether the reply ran into its length limit."""
        return self.finished is not None and self.finished.reason == "length"

    def release(self) -> None:
        """The turn is committed: go on past the drafted sentences."""
        self._released.set()
        self._priority.commit(self)

    def cancel(self) -> None:
        """Stop between passes and chunks. What was generated stays readable as `ids` once `generate`
        returns."""
        self.token.cancel()
        self._voicing.cancel()
        self._released.set()
        self._sentences.put_nowait(None)
        self._judged.set()
        self.sound.break_off()

    def say(self, text: str) -> None:
        """A fixed text instead of a generated one: one sentence to the voice."""
        self.text = text
        self._sentences.put_nowait(text)
        self._sentences.put_nowait(None)

    async def generate(
        self, session: LanguageSession, messages: Sequence[Message], sampling: Sampling, draft: Sequence[int]
    ) -> None:
        """Run the language stage; sentences go to the voice as they end. A failure is kept in `failure`."""
        try:
            await self._generate(session, messages, sampling, draft)
            if self._may_be_different(sampling) and not await self._sounds():
                log.warning("reply %s: nothing to hear, so it is made once more", self.id)
                self.made_again, self.text, self._drafted_sentences = True, "", 0
                self._timeline.redraft()
                await self._generate(session, messages, replace(sampling, seed=sampling.seed + 1), ())
        except Exception as error:
            self._fail("llm", error)
        finally:
            self._sentences.put_nowait(None)

    async def _generate(
        self, session: LanguageSession, messages: Sequence[Message], sampling: Sampling, draft: Sequence[int]
    ) -> None:
        self._mark("llm_start")

        def cancelled() -> bool:
            return self._priority.stand_aside(self, self.token)

        events = self._workers.stream(
            "llm",
            lambda: session.reply(messages, sampling, draft=draft, cancelled=cancelled),
            self.token,
        )
        with self._priority.making(self, committed=self._released.is_set()):
            async with contextlib.aclosing(events) as replies:
                async for event in replies:
                    await self._take(event)

    def _may_be_different(self, sampling: Sampling) -> bool:
        """Whether the reply, which came to its end, may be another one if it is made again."""
        finished = self.finished
        if finished is None or finished.reason not in ("eos", "stop"):
            return False
        return sampling.temperature > 0 or finished.stats.verification == "server"

    async def _sounds(self) -> bool:
        """Whether anything of the sentences so far can be heard; True also where nobody asks any more."""
        if not self.sound.sounds:
            self._judged.clear()
            self._sentences.put_nowait("")  # which the voice comes to behind all of them
            if not self.token():
                await self._judged.wait()
        return self.sound.sounds or self.token()

    async def _take(self, event: ReplyEvent) -> None:
        if isinstance(event, Delta):
            self._mark("llm_first_token")
            self.text += event.text
        elif isinstance(event, Thinking):
            self._mark("llm_first_token")
        elif isinstance(event, Retracted):
            self._retract()
        elif isinstance(event, Sentence):
            self._mark("llm_first_sentence")
            self._sentences.put_nowait(event.text)
            self._drafted_sentences += 1
            if self._drafted_sentences >= AHEAD_SENTENCES:
                await self._released.wait()
        else:
            self.finished = event
            self.text = event.text

    def _retract(self) -> None:
        """What was told so far was a thought: none of it is said that was not sent yet."""
        self.text, self._drafted_sentences = "", 0
        if self.token():
            return
        while not self._sentences.empty():
            self._sentences.get_nowait()
        if self.sound.withdraw():
            self._voicing.cancel()
        if not self.sound.sounds:
            self._timeline.withdraw()

    async def synthesise(self) -> None:
        """Voice the sentences into the sound, in order. A failure is kept in `failure`."""
        try:
            while (text := await self._sentences.get()) is not None and not self.token():
                if not text:
                    self._judged.set()
                    continue
                self.sound.begin_sentence(text)
                await self._voice_sentence(text)
        except Exception as error:
            self._fail("tts", error)
        finally:
            self._judged.set()
            self.sound.finish()

    async def _voice_sentence(self, text: str) -> None:
        self._mark("tts_start")
        known = self._reusable.get(text)
        if known is not None:
            self.spoken[text] = known
            for chunk in known.chunks:
                self._put(chunk)
            return
        spoken, wanted = SentenceAudio(), CancelToken()
        self._voicing = wanted
        chunks = self._workers.stream("tts", lambda: self._voice.synthesise(text, cancelled=wanted), wanted)
        async with contextlib.aclosing(chunks) as made:
            async for chunk in made:
                if wanted():
                    return
                spoken.chunks.append(chunk)
                self._put(chunk)
        if not wanted() and not any(chunk.broken_off for chunk in spoken.chunks):
            self.spoken[text] = spoken

    def _put(self, chunk: VoiceChunk) -> None:
        if not self.token():
            self._mark("tts_first_audio")
            self.sound.append(chunk)
            if self.sound.sounds:
                self._judged.set()

    def _fail(self, stage: str, error: Exception) -> None:
        self.failure = self.failure or StageFailed(stage, error)
        self.cancel()

    def _mark(self, name: str) -> None:
        if not self.token():
            self._timeline.mark(name, asyncio.get_running_loop().time())


class Replies:
    """Makes the replies of one call."""

    def __init__(self, call_id: str, *, workers: Workers, voice: Voice, priority: LanguagePriority) -> None:
        self._call_id = call_id
        self._workers = workers
        self._voice = voice
        self._priority = priority
        self._made = 0

    def new(self, timeline: Timeline, *, reusable: Mapping[str, SentenceAudio] | None = None) -> Reply:
        """A reply whose marks go to `timeline`; `reusable`: audio of sentences by their text."""
        self._made += 1
        return Reply(
            f"reply_{self._call_id}_{self._made}",
            workers=self._workers,
            voice=self._voice,
            priority=self._priority,
            timeline=timeline,
            reusable=reusable,
        )
