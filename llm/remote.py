"""A language model behind an OpenAI-compatible server (vLLM, llama.cpp's server, SGLang, a provider).

The server generates, and speculates by itself if it does; here its stream becomes the same events as those of
the embedded model. What it says of its speculation in the last chunk goes into the same figures.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import httpx

from llm.engine import Pass, Reason
from llm.prompt import Message
from llm.reply_stream import Delta, Finished, ReplyEvent, Sentence
from llm.sampling import Sampling
from llm.sentences import WHOLE_SENTENCES, SentencePolicy, SentenceStream
from llm.stats import ReplyStats
from llm.verify import Verification

_POLL_SECONDS = 0.02
_STALL_SECONDS = 1.0
_MOST_WAITING = 1024


class RemoteError(RuntimeError):
    """The language model's server refused, failed or fell silent; the message says what and which server."""


class RemoteLanguageModel:
    """Chat completions of one model on one server. Conversations share its connections.

    `base_url` ends in `/v1`, as the OpenAI clients have it. `timeout`: seconds without a byte until the
    reply fails.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout: float = 20.0,
        clock: Callable[[], float] = time.perf_counter,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.model = model
        self.clock = clock
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self.client = httpx.Client(
            headers=headers, timeout=httpx.Timeout(timeout, connect=3.0), transport=transport
        )

    def open(
        self,
        *,
        tenant: str = "",
        sentences: SentencePolicy = WHOLE_SENTENCES,
        verification: Verification = "coupled",
    ) -> RemoteConversation:
        """A new call. The server keeps its own caches and checks its own drafts by its own rule, so `tenant`
        and `verification` change nothing."""
        return RemoteConversation(self, sentences)

    def warm_up(self) -> None:
        """Ask for one token, so that a wrong address or key shows at the start. Raises `RemoteError`."""
        for _ in self.open().reply(
            [Message("user", "Hello")], Sampling(max_tokens=1), cancelled=lambda: False
        ):
            pass

    def close(self) -> None:
        self.client.close()


class RemoteConversation:
    """One call. Drafts and taught text are of no use to a server that cannot be handed them."""

    def __init__(self, model: RemoteLanguageModel, sentences: SentencePolicy) -> None:
        self._model = model
        self._sentences = sentences

    def prefill(self, messages: Sequence[Message], cancelled: Callable[[], bool]) -> int:
        """Nothing to read ahead: returns 0."""
        return 0

    def learn(self, text: str) -> None:
        pass

    def close(self) -> None:
        pass

    def reply(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        *,
        draft: Sequence[int] = (),
        cancelled: Callable[[], bool],
        passes: list[Pass] | None = None,
    ) -> Iterator[ReplyEvent]:
        """As the embedded conversation's; ids are unknown here and empty. Raises `RemoteError`."""
        model = self._model
        stats = ReplyStats(verification="server", started=model.clock())
        said = _Said(stats, model.clock, SentenceStream(self._sentences))
        reason: Reason = "cancelled"
        with _Stream(model, _request(model.model, messages, sampling)) as chunks:
            for chunk in chunks.until(cancelled):
                if chunk is None:
                    yield from said.stalled()
                    continue
                _take_usage(chunk, stats)
                for choice in chunk.get("choices") or ():
                    yield from said.more((choice.get("delta") or {}).get("content") or "")
                    if choice.get("finish_reason"):
                        reason = _reason(choice)
            if chunks.finished and reason == "cancelled":
                raise RemoteError(f"{model.base_url} ended the reply without saying why")
        yield from said.rest()
        stats.finished = model.clock()
        yield Finished(reason, (), said.text, stats)


class _Said:
    """The reply's text as it comes, in deltas and sentences."""

    def __init__(self, stats: ReplyStats, clock: Callable[[], float], sentences: SentenceStream) -> None:
        self.text = ""
        self._stats, self._clock = stats, clock
        self._sentences = sentences
        self._count = 0

    def more(self, text: str) -> Iterator[ReplyEvent]:
        if text:
            if self._stats.first_token is None:
                self._stats.first_token = self._clock()
            self.text += text
            yield Delta(text)
            yield from map(self._sentence, self._sentences.push(text))

    def stalled(self) -> Iterator[ReplyEvent]:
        """The server is silent for a while: a sentence that is only waiting for the next one is whole."""
        yield from map(self._sentence, self._sentences.stall())

    def rest(self) -> Iterator[ReplyEvent]:
        """The reply is over."""
        yield from map(self._sentence, self._sentences.flush())

    def _sentence(self, text: str) -> Sentence:
        if self._count == 0:
            self._stats.first_sentence = self._clock()
        self._count += 1
        return Sentence(self._count - 1, text)


class _Stream:
    """Server-sent events of one request, read by a thread so that a silent server can be cancelled too."""

    def __init__(self, model: RemoteLanguageModel, request: Mapping[str, Any]) -> None:
        self._model, self._request = model, request
        self._chunks: queue.Queue[dict[str, Any] | RemoteError | None] = queue.Queue(_MOST_WAITING)
        self._closed = threading.Event()
        self._response: httpx.Response | None = None
        self._reader = threading.Thread(target=self._read, name="remote reply", daemon=True)
        self.finished = False

    def __enter__(self) -> _Stream:
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        if not self.finished and self._response is not None:
            self._response.close()

    def until(self, cancelled: Callable[[], bool]) -> Generator[dict[str, Any] | None, None, None]:
        """Chunks until the last one or a cancellation; None once whenever nothing came for a second."""
        silent_since, told = self._model.clock(), False
        while not cancelled():
            try:
                chunk = self._chunks.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                if not told and self._model.clock() - silent_since > _STALL_SECONDS:
                    told = True
                    yield None
                continue
            silent_since, told = self._model.clock(), False
            if isinstance(chunk, RemoteError):
                raise chunk
            if chunk is None:
                self.finished = True
                return
            yield chunk

    def _read(self) -> None:
        server = self._model.base_url
        try:
            url = f"{server}/chat/completions"
            with self._model.client.stream("POST", url, json=self._request) as self._response:
                if self._response.status_code != 200:
                    self._response.read()
                    said = _without_prompt(self._response.text, self._request["messages"])[:300]
                    self._put(RemoteError(f"{server} answered {self._response.status_code}: {said}"))
                    return
                for line in self._response.iter_lines():
                    data = line.removeprefix("data:").strip()
                    if data == "[DONE]" or self._closed.is_set():
                        break
                    if line.startswith("data:"):
                        self._put(_event(data, server))
            self._put(None)
        except RemoteError as error:
            self._put(error)
        except json.JSONDecodeError as error:
            self._put(RemoteError(f"{server} sent an event that is not JSON: {error}"))
        except Exception as error:  # not httpx's alone: of an address it may also be the codec's or its own
            self._put(RemoteError(f"the language model's server {server} failed: {error or type(error)}"))

    def _put(self, item: dict[str, Any] | RemoteError | None) -> None:
        while not self._closed.is_set():
            with suppress(queue.Full):
                self._chunks.put(item, timeout=0.1)
                return


def _request(model: str, messages: Sequence[Message], sampling: Sampling) -> dict[str, Any]:
    request: dict[str, Any] = {
        "model": model,
        "messages": [{"role": m.role, "content": m.text} for m in messages],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "seed": sampling.seed,
    }
    # Only what is asked for: not every server knows every one of these.
    optional = {
        "stop": list(sampling.stop),
        "frequency_penalty": sampling.frequency_penalty,
        "presence_penalty": sampling.presence_penalty,
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "min_tokens": sampling.min_tokens,
        "logit_bias": {str(token): bias for token, bias in sampling.logit_bias.items()},
        "bad_words": list(sampling.bad_words),
    }
    request |= {name: value for name, value in optional.items() if value}
    if sampling.repetition_penalty != 1.0:
        request["repetition_penalty"] = sampling.repetition_penalty
    return request


def _without_prompt(said: str, messages: Sequence[Mapping[str, str]]) -> str:
    """What a server said of a request, without what callers said: some quote all that they refuse."""
    for text in (message["content"] for message in messages):
        for quoted in (json.dumps(text), json.dumps(text, ensure_ascii=False), repr(text)):
            for form in (quoted, json.dumps(quoted)[1:-1], json.dumps(quoted, ensure_ascii=False)[1:-1]):
                said = said.replace(form, "…")
    return said


def _event(data: str, server: str) -> dict[str, Any]:
    """An event of the stream. Raises `RemoteError` for one that tells of a failure amid the reply."""
    event = json.loads(data)
    if not isinstance(event, dict):
        raise RemoteError(f"{server} sent an event that is not an object: {data[:300]}")
    if event.get("error"):
        raise RemoteError(f"{server} broke off the reply: {json.dumps(event['error'])[:300]}")
    return event


def _reason(choice: Mapping[str, Any]) -> Reason:
    """vLLM tells a stop string from the end token by `stop_reason`; elsewhere both are `stop`."""
    if choice["finish_reason"] == "length":
        return "length"
    return "stop" if isinstance(choice.get("stop_reason"), str) else "eos"


def _take_usage(chunk: Mapping[str, Any], stats: ReplyStats) -> None:
    usage = chunk.get("usage") or {}
    stats.prompt_tokens = usage.get("prompt_tokens", stats.prompt_tokens)
    stats.committed_tokens = usage.get("completion_tokens", stats.committed_tokens)
    details = usage.get("prompt_tokens_details") or {}
    stats.cached_tokens = details.get("cached_tokens") or stats.cached_tokens
    stats.prefilled_tokens = stats.prompt_tokens - stats.cached_tokens
    drafted = _find(chunk, "num_draft_tokens", "draft_n")
    if drafted:
        stats.drafted["server"] = drafted
        stats.accepted["server"] = _find(chunk, "num_accepted_draft_tokens", "draft_n_accepted") or 0
        stats.drafts = _find(chunk, "num_spec_steps") or 0
        stats.passes = stats.committed_tokens - stats.accepted["server"]


def _find(data: Mapping[str, Any], *names: str) -> int | None:
    """A number under one of these names, at any depth: servers differ in where they put it."""
    for key, value in data.items():
        if key in names and isinstance(value, int):
            return value
        if isinstance(value, dict) and (found := _find(value, *names)) is not None:
            return found
    return None
