"""A reply as a stream of events: committed ids become text, text becomes sentences, the end is settled.

Thoughts are no text: of them there is only told that they are thought (see `llm.thoughts`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from llm.answer_text import AnswerText
from llm.cache import PREFILL_CHUNK
from llm.engine import Generation, Reason
from llm.sentences import SentencePolicy, SentenceStream
from llm.stats import ReplyStats
from llm.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Delta:
    """Text that just became certain."""

    text: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence that just ended, trailing white space included. All of them joined are the reply's text."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """The model has begun a thought: nothing comes of it but time."""


@dataclass(frozen=True, slots=True)
class Retracted:
    """All text so far was a thought, whose beginning had not been written. Sentences count from 0 again."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The reply is over. `ids` decode to `text` exactly; the end token and stop strings are in neither.

    The ids of thoughts are in `ids` too; `stats.thinking_tokens` says whether there are any.
    """

    reason: Reason
    ids: tuple[int, ...]
    text: str
    stats: ReplyStats


ReplyEvent = Delta | Sentence | Thinking | Retracted | Finished


class ReplyEvents:
    """What is told of a reply as its text comes, and when: the same for the embedded model and a server's."""

    def __init__(self, stats: ReplyStats, clock: Callable[[], float], sentences: SentencePolicy) -> None:
        self.stats = stats
        self._clock = clock
        self._policy = sentences
        self._sentences = SentenceStream(sentences)
        self._count = 0
        self._tokens = 0
        self._thinking_since: float | None = None

    def token(self, *, thought: bool, thinking: bool) -> Iterator[ReplyEvent]:
        """One more of the model's tokens, or of a server's pieces. `thought`: one was open in it, `thinking`:
        one still is."""
        self._tokens += 1
        if self.stats.first_token is None:
            self.stats.first_token = self._clock()
        self.stats.thinking_tokens += thought
        if thought and self._thinking_since is None:
            self._thinking_since = self._clock()
            yield Thinking()
        if not thinking:
            self._end_thought()

    def recall(self) -> Iterator[ReplyEvent]:
        """All so far was a thought."""
        stats = self.stats
        stats.thinking_tokens, stats.first_sentence = self._tokens, None
        stats.thinking_seconds = self._clock() - (stats.first_token or stats.started)
        self._sentences, self._count = SentenceStream(self._policy), 0
        yield Retracted()

    def text(self, text: str) -> Iterator[ReplyEvent]:
        """Text that is certain to be said."""
        if text:
            yield Delta(text)
            yield from map(self._sentence, self._sentences.push(text))

    def stall(self) -> Iterator[ReplyEvent]:
        """Nothing comes for a while: a sentence that is only waiting for the next one is whole."""
        yield from map(self._sentence, self._sentences.stall())

    def rest(self) -> Iterator[ReplyEvent]:
        """The reply is over."""
        self._end_thought()
        yield from map(self._sentence, self._sentences.flush())

    def _end_thought(self) -> None:
        if self._thinking_since is not None:
            self.stats.thinking_seconds += self._clock() - self._thinking_since
            self._thinking_since = None

    def _sentence(self, text: str) -> Sentence:
        if self._count == 0:
            self.stats.first_sentence = self._clock()
        self._count += 1
        return Sentence(self._count - 1, text)


class ReplyStream:
    """Runs one generation and gives its events. Iterate `events()` once; closing it early cancels."""

    def __init__(
        self,
        generation: Generation,
        tokenizer: Tokenizer,
        sentences: SentencePolicy,
        clock: Callable[[], float],
        finished: Callable[[Finished], None],
        opened: tuple[str, ...] = (),
    ) -> None:
        """`opened`: the thoughts that the prompt's end has opened."""
        self._generation = generation
        self._tokenizer = tokenizer
        sampling = generation.state.processors.sampling
        self._text = AnswerText(tokenizer.token_bytes, sampling.stop, sampling.min_tokens, opened)
        self._telling = ReplyEvents(generation.stats, clock, sentences)
        self._clock = clock
        self._finished = finished

    def events(self) -> Generator[ReplyEvent, None, None]:
        self._read_prompt()
        tokens = self._generation.__iter__()
        try:
            for token in tokens:
                text = self._text.push(token)
                yield from self._telling.token(thought=self._text.thought, thinking=self._text.thinking)
                yield from self._said(text)
                if self._text.stopped:
                    self._generation.ended = "stop"
                    break
        finally:
            tokens.close()
        yield from self._said(self._text.flush())
        yield from self._telling.rest()
        yield self._settle()

    def _read_prompt(self) -> None:
        """Bring the cache up to the prompt's last chunk, which the first pass reads together with a draft."""
        generation = self._generation
        prompt, cache, stats = generation.state.ids, generation.cache, generation.stats
        stats.cached_tokens = cache.begin(prompt[:-1])
        stats.prefilled_tokens = len(prompt) - stats.cached_tokens
        alone = (stats.prefilled_tokens - 1) // PREFILL_CHUNK * PREFILL_CHUNK
        cache.read(prompt[stats.cached_tokens :][:alone], generation.cancelled)

    def _said(self, text: str) -> Iterator[ReplyEvent]:
        if self._text.recalled:
            yield from self._telling.recall()
        yield from self._telling.text(text)

    def _settle(self) -> Finished:
        """Make ids, text, cache and figures agree where the text ends inside a token."""
        generation = self._generation
        committed = generation.committed
        kept, rest = self._text.kept()
        generation.retract(len(committed) - kept)
        ids = (*committed[:kept], *(self._tokenizer.encode(rest) if rest else ()))
        generation.stats.finished = self._clock()
        assert generation.ended is not None
        finished = Finished(generation.ended, ids, self._text.text, generation.stats)
        self._finished(finished)
        return finished
