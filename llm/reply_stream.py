"""A reply as a stream of events: committed ids become text, text becomes sentences, the end is settled."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from llm.cache import PREFILL_CHUNK
from llm.engine import Generation, Reason
from llm.sentences import SentenceStream
from llm.stats import ReplyStats
from llm.stop_strings import StopStringFilter
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
class Finished:
    """The reply is over. `ids` decode to `text` exactly; the end token and stop strings are in neither."""

    reason: Reason
    ids: tuple[int, ...]
    text: str
    stats: ReplyStats


ReplyEvent = Delta | Sentence | Finished


class ReplyStream:
    """Runs one generation and gives its events. Iterate `events()` once; closing it early cancels."""

    def __init__(
        self,
        generation: Generation,
        tokenizer: Tokenizer,
        sentences: SentenceStream,
        clock: Callable[[], float],
        finished: Callable[[Finished], None],
    ) -> None:
        self._generation = generation
        self._tokenizer = tokenizer
        sampling = generation.state.processors.sampling
        self._text = StopStringFilter(tokenizer.token_bytes, sampling.stop, sampling.min_tokens)
        self._sentences = sentences
        self._sentence_count = 0
        self._clock = clock
        self._finished = finished

    def events(self) -> Generator[ReplyEvent, None, None]:
        stats = self._generation.stats
        self._read_prompt()
        tokens = self._generation.__iter__()
        try:
            for token in tokens:
                if stats.first_token is None:
                    stats.first_token = self._clock()
                yield from self._said(self._text.push(token))
                if self._text.stopped:
                    self._generation.ended = "stop"
                    break
        finally:
            tokens.close()
        yield from self._said(self._text.flush())
        yield from map(self._sentence, self._sentences.flush())
        yield self._settle()

    def _read_prompt(self) -> None:
        """Bring the cache up to the prompt's last chunk, which the first pass reads together with a draft."""
        generation = self._generation
        prompt, cache, stats = generation.state.ids, generation.cache, generation.stats
        stats.cached_tokens = cache.keep_prefix(prompt[:-1])
        stats.prefilled_tokens = len(prompt) - stats.cached_tokens
        alone = (stats.prefilled_tokens - 1) // PREFILL_CHUNK * PREFILL_CHUNK
        cache.read(prompt[stats.cached_tokens :][:alone], generation.cancelled)

    def _said(self, text: str) -> Iterator[ReplyEvent]:
        if text:
            yield Delta(text)
            yield from map(self._sentence, self._sentences.push(text))

    def _sentence(self, text: str) -> Sentence:
        if self._sentence_count == 0:
            self._generation.stats.first_sentence = self._clock()
        self._sentence_count += 1
        return Sentence(self._sentence_count - 1, text)

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
