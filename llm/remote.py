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
from llm.reply_stream import Finished, ReplyEvent, ReplyEvents, Retracted, Thinking
from llm.sampling import Sampling
from llm.sentences import WHOLE_SENTENCES, SentencePolicy
from llm.stats import ReplyStats
from llm.thoughts import ASSUMED, BARE_CHANNELS, PHRASES, Split, Thoughts
from llm.verify import Verification

_POLL_SECONDS = 0.02
_STALL_SECONDS = 1.0
_MOST_WAITING = 1024
_GREETING_TOKENS = 256
_THOUGHTS = frozenset({"reasoning", "thinking", "thought", "thoughts", "think", "reflection"})
"""Words in the names under which servers put thoughts in a delta, beside the content: ``reasoning_content``,
``reasoning_details``, ``thinking_blocks``."""


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
        self.thinks_first = False
        """Whether replies begin amid a thought: the server's chat template writes its beginning."""
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
        """Ask for a greeting, so that a wrong address or key shows at the start, and whether replies begin
        amid a thought. Raises `RemoteError`."""
        greeting = self.open().reply(
            [Message("user", "Say hello.")], Sampling(max_tokens=_GREETING_TOKENS), cancelled=lambda: False
        )
        for event in greeting:
            if isinstance(event, Thinking | Retracted):  # how it thinks is known, what it says is not needed
                break
        greeting.close()

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
    ) -> Generator[ReplyEvent, None, None]:
        """As the embedded conversation's; ids are unknown here and empty. Raises `RemoteError`."""
        model = self._model
        stats = ReplyStats(verification="server", started=model.clock())
        telling = ReplyEvents(stats, model.clock, self._sentences)
        said = _Said(model, telling)
        reason: Reason = "cancelled"
        with _Stream(model, _request(model.model, messages, sampling)) as chunks:
            for chunk in chunks.until(cancelled):
                if chunk is None:
                    yield from telling.stall()
                    continue
                _take_usage(chunk, stats)
                for choice in chunk.get("choices") or ():
                    for thought, text in _pieces(choice.get("delta") or {}):
                        yield from said.thought() if thought else said.more(text)
                    if choice.get("finish_reason"):
                        reason = _reason(choice)
            if chunks.finished and reason == "cancelled":
                raise RemoteError(f"{model.base_url} ended the reply without saying why")
        yield from said.rest(reason)
        stats.finished = model.clock()
        yield Finished(reason, (), said.text, stats)


class _Said:
    """The reply's text as it comes, without its thoughts; what it shows of the model is noted there."""

    def __init__(self, model: RemoteLanguageModel, telling: ReplyEvents) -> None:
        self.text = ""
        self._model = model
        self._telling = telling
        self._thoughts = Thoughts(ASSUMED if model.thinks_first else (), PHRASES | BARE_CHANNELS)
        self._unsaid = ""  # what came of a reply that is believed to have begun amid a thought

    def thought(self) -> Iterator[ReplyEvent]:
        """A piece of a thought that the server itself tells from the text."""
        if self._thoughts.only_assumed:
            self._model.thinks_first, self._thoughts = False, Thoughts()
        yield from self._telling.token(thought=True, thinking=True)

    def more(self, text: str) -> Iterator[ReplyEvent]:
        if self._thoughts.only_assumed:
            self._unsaid += text
        split = self._thoughts.push(text)
        yield from self._telling.token(thought=self._thoughts.thought, thinking=self._thoughts.thinking)
        yield from self._tell(split)

    def rest(self, reason: Reason) -> Iterator[ReplyEvent]:
        """The reply is over. One that was believed to have begun amid a thought, but comes to its end without
        leaving it, was none."""
        if self._thoughts.only_assumed and reason in ("eos", "stop"):
            self._model.thinks_first = False
            yield from self._tell(Split(self._unsaid))
        else:
            yield from self._tell(self._thoughts.flush())
        yield from self._telling.rest()

    def _tell(self, split: Split) -> Iterator[ReplyEvent]:
        if split.recall:
            self.text, self._model.thinks_first = "", True
            yield from self._telling.recall()
        self.text += split.text
        yield from self._telling.text(split.text)


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


def _pieces(delta: Mapping[str, Any]) -> Iterator[tuple[bool, str]]:
    """What a delta brings, in order: whether it is a thought, and its text. Content may be a list of parts
    with their types, as Mistral sends it."""
    if any(value and not _THOUGHTS.isdisjoint(name.lower().split("_")) for name, value in delta.items()):
        yield True, ""
    content = delta.get("content") or ""
    for part in [content] if isinstance(content, str) else content:
        if isinstance(part, str):
            kind, text = "text", part
        else:
            kind, text = str(part.get("type", "text")), part.get("text") or ""
            if part.get("thought") is True:  # Gemini's parts
                kind = "thought"
        if kind not in ("text", "output_text") or text:
            yield kind not in ("text", "output_text"), text


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
    thought = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
    stats.thinking_tokens = thought or stats.thinking_tokens
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
