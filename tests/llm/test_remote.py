"""A remote server's stream becomes the same events, and its faults clear errors."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from llm.language_model import Delta, Finished, Message, Retracted, Sampling, Sentence, Thinking
from llm.remote import RemoteError, RemoteLanguageModel

PROMPT = [Message("system", "Be brief."), Message("user", "When do you open?")]


def chunk(text: str = "", finish: str | None = None, **more: Any) -> str:
    return json.dumps({"choices": [{"delta": {"content": text}, "finish_reason": finish}], **more})


REPLY = [chunk("We open "), chunk("at 8. "), chunk("See you"), chunk(" then!"), chunk(finish="stop")]
USAGE = json.dumps(
    {
        "choices": [],
        "usage": {
            "prompt_tokens": 30,
            "completion_tokens": 12,
            "prompt_tokens_details": {"cached_tokens": 16},
        },
        "metrics": {"spec": {"num_spec_steps": 5, "num_draft_tokens": 15, "num_accepted_draft_tokens": 7}},
    }
)


@contextmanager
def server(
    events: Callable[[], Iterator[str]], status: int = 200
) -> Iterator[tuple[RemoteLanguageModel, list[dict[str, Any]]]]:
    """A real HTTP server on this machine that sends these events; and the requests it got."""
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            requests.append({"path": self.path, "key": self.headers["Authorization"], **json.loads(body)})
            self.send_response(status)
            self.end_headers()
            for event in events():
                self.wfile.write(f"{event}\n\n".encode())
                self.wfile.flush()

        def log_message(self, *_: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever)
    thread.start()
    model = RemoteLanguageModel(f"http://127.0.0.1:{http.server_port}/v1", "some-model", api_key="secret")
    try:
        yield model, requests
    finally:
        model.close()
        http.shutdown()
        thread.join()
        http.server_close()


def sending(*events: str) -> Callable[[], Iterator[str]]:
    return lambda: (f"data: {event}" for event in events)


def reply(model: RemoteLanguageModel, **sampling: Any) -> list[Any]:
    return list(model.open().reply(PROMPT, Sampling(**sampling), cancelled=lambda: False))


def test_a_stream_becomes_deltas_sentences_and_figures() -> None:
    with server(sending(*REPLY, USAGE, "[DONE]")) as (model, requests):
        *events, last = reply(model, max_tokens=50, stop=("END",), seed=3)
    assert isinstance(last, Finished)
    assert (
        last.text == "".join(e.text for e in events if isinstance(e, Delta)) == "We open at 8. See you then!"
    )
    assert [e.text for e in events if isinstance(e, Sentence)] == ["We open at 8. ", "See you then!"]
    assert last.reason == "eos"
    figures = last.stats.as_dict()
    assert (figures["prompt_tokens"], figures["cached_tokens"], figures["completion_tokens"]) == (30, 16, 12)
    assert figures["spec_decode_num_drafts"] == 5
    assert figures["spec_decode_num_draft_tokens"] == 15
    assert figures["spec_decode_num_accepted_tokens"] == 7
    assert figures["tokens_per_pass"] == 12 / 5
    assert last.stats.ttft is not None
    asked = requests[0]
    assert (asked["path"], asked["key"]) == ("/v1/chat/completions", "Bearer secret")
    assert asked["messages"][1] == {"role": "user", "content": "When do you open?"}
    assert (asked["stop"], asked["seed"], asked["max_tokens"]) == (["END"], 3, 50)
    assert "top_k" not in asked, "only what was asked for"


def test_length_and_stop_are_told_apart() -> None:
    with server(sending(chunk("Hi"), chunk(finish="length"), "[DONE]")) as (model, _):
        assert reply(model)[-1].reason == "length"
    stopped = json.dumps({"choices": [{"delta": {}, "finish_reason": "stop", "stop_reason": "END"}]})
    with server(sending(chunk("Hi"), stopped, "[DONE]")) as (model, _):
        assert reply(model)[-1].reason == "stop"


def test_a_silent_server_can_be_cancelled() -> None:
    release = threading.Event()

    def silent() -> Iterator[str]:
        yield f"data: {chunk('We open at')}"
        release.wait(30)

    with server(silent) as (model, _):
        heard: list[Any] = []
        events = model.open().reply(PROMPT, Sampling(), cancelled=lambda: bool(heard))
        heard.append(next(events))
        heard += events
        release.set()
    assert isinstance(heard[-1], Finished)
    assert (heard[-1].reason, heard[-1].text) == ("cancelled", "We open at")


@pytest.mark.parametrize(
    ("before", "after", "sentences"),
    [
        ("We are open.", " Bye.", ["We are open.", " Bye."]),
        ("We open at ei", "ght. Bye.", ["We open at eight. ", "Bye."]),
    ],
    ids=["behind a sentence", "inside a word"],
)
def test_a_server_that_stalls_cuts_no_word(before: str, after: str, sentences: list[str]) -> None:
    release = threading.Event()
    heard: list[Any] = []
    polls: list[int] = []

    def stalling() -> Iterator[str]:
        yield f"data: {chunk(before)}"
        release.wait(30)
        yield f"data: {chunk(after, finish='stop')}"

    def cancelled() -> bool:
        polls.extend([1] if heard else [])
        if len(polls) > 5:
            release.set()
        return False

    with server(stalling) as (model, _):
        model.clock = itertools.count(0.0, 2.0).__next__  # every look finds that seconds have passed
        heard.extend(model.open().reply(PROMPT, Sampling(), cancelled=cancelled))
    assert [e.text for e in heard if isinstance(e, Sentence)] == sentences


@pytest.mark.parametrize(
    ("events", "status", "message"),
    [
        (('{"error": "no such model"}',), 404, "404.*no such model"),
        (("data: {not json",), 200, "not JSON"),
        (("data: [1]",), 200, "not an object"),
        ((f"data: {chunk('Hi')}", "data: [DONE]"), 200, "without saying why"),
        ((f"data: {chunk('Hi')}", 'data: {"error": {"message": "out of memory"}}'), 200, "out of memory"),
    ],
    ids=["refused", "not JSON", "no object", "cut short", "broken off"],
)
def test_a_fault_of_the_server_is_told(events: tuple[str, ...], status: int, message: str) -> None:
    with server(lambda: iter(events), status) as (model, _), pytest.raises(RemoteError, match=message):
        reply(model)


@pytest.mark.parametrize("quoted", [str, json.dumps], ids=["as Python", "as JSON"])
def test_a_refusal_does_not_show_what_was_said(quoted: Callable[[object], str]) -> None:
    said = 'It\'s 4711 — "Łukasz".'
    refused = json.dumps({"error": {"message": quoted([{"msg": "too long", "input": [{"content": said}]}])}})
    with server(lambda: iter((refused,)), 400) as (model, _), pytest.raises(RemoteError) as raised:
        list(model.open().reply([Message("user", said)], Sampling(max_tokens=5), cancelled=lambda: False))
    assert "too long" in str(raised.value)
    assert "4711" not in str(raised.value)


def test_a_server_that_is_not_there_is_told() -> None:
    with pytest.raises(RemoteError, match=r"127\.0\.0\.1:9"):
        RemoteLanguageModel("http://127.0.0.1:9/v1", "some-model").warm_up()


@pytest.mark.parametrize("address", ["http://localhost:80a/v1", f"http://{'a' * 70}.test/v1"])
def test_an_address_that_is_none_is_told(address: str) -> None:
    """Not by httpx's own errors: what a thread does not expect nobody hears of."""
    with pytest.raises(RemoteError, match="failed"):
        list(RemoteLanguageModel(address, "some-model").open().reply(PROMPT, Sampling(), cancelled=later()))


def later() -> Callable[[], bool]:
    """Gives up after some polls, so that what hangs fails."""
    polls = iter([False] * 100)
    return lambda: next(polls, True)


# ---- thoughts


def delta(finish: str | None = None, **fields: Any) -> str:
    return json.dumps({"choices": [{"delta": fields, "finish_reason": finish}]})


THINKING_SERVERS = {
    "reasoning_content": [
        delta(reasoning_content="They ask. "),
        delta(reasoning_content="Nine.", content=None),
        delta(content="We open at 9."),
    ],
    "reasoning": [delta(reasoning="They ask."), delta(content="We open"), delta(content=" at 9.")],
    "thinking": [delta(thinking="They ask."), delta(content="We open at 9.")],
    "details": [delta(content="", reasoning_details=[{"text": "They ask."}]), delta(content="We open at 9.")],
    "blocks": [
        delta(content=None, thinking_blocks=[{"type": "thinking", "thinking": "They ask."}]),
        delta(content="We open at 9."),
    ],
    "marked parts": [
        delta(content=[{"text": "They ask.", "thought": True}]),
        delta(content=[{"text": "We open at 9."}]),
    ],
    "attributes": [delta(content='<think effort="low">They ask.'), delta(content="</think >We open at 9.")],
    "parts": [
        delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "They ask."}]}]),
        delta(content=[{"type": "text", "text": "We open at 9."}]),
    ],
    "tags": [
        delta(content="<thi"),
        delta(content="nk>They ask.</th"),
        delta(content="ink>\n\nWe open at 9."),
    ],
    "bare channels": [
        delta(content="analysis"),
        delta(content="They ask.assistantfinal"),
        chunk("We open at 9."),
    ],
}


@pytest.mark.parametrize("kind", THINKING_SERVERS)
def test_thoughts_are_no_text_however_the_server_sends_them(kind: str) -> None:
    with server(sending(*THINKING_SERVERS[kind], chunk(finish="stop"), "[DONE]")) as (model, _):
        *events, last = reply(model)
    assert isinstance(last, Finished)
    assert last.text == "".join(e.text for e in events if isinstance(e, Delta)) == "We open at 9."
    assert [e.text for e in events if isinstance(e, Sentence)] == ["We open at 9."]
    assert events[0] == Thinking()
    assert last.stats.thinking_tokens > 0
    assert last.stats.thinking_seconds > 0
    assert last.stats.first_token is not None
    assert last.stats.first_sentence is not None
    assert last.stats.first_token < last.stats.first_sentence


def test_the_servers_count_of_thoughts_is_taken() -> None:
    usage = {"completion_tokens": 50, "completion_tokens_details": {"reasoning_tokens": 40}}
    told = json.dumps({"choices": [], "usage": usage})
    with server(sending(*THINKING_SERVERS["tags"], chunk(finish="stop"), told, "[DONE]")) as (model, _):
        assert reply(model)[-1].stats.thinking_tokens == 40


OPENED = [
    chunk("They ask. "),
    chunk("We say nine.\n</thi"),
    chunk("nk>\n\nWe open at 9."),
    chunk(finish="stop"),
]
"""The chat template of this server's model has begun the thought."""


def test_an_end_without_a_beginning_takes_back_what_was_told_and_is_known_from_then_on() -> None:
    with server(sending(*OPENED, "[DONE]")) as (model, _):
        first = reply(model)
        second = reply(model)
    assert Retracted() in first
    after = first[first.index(Retracted()) :]
    assert [e.text for e in after if isinstance(e, Sentence)] == ["We open at 9."]
    assert [e.text for e in second if isinstance(e, Sentence | Delta)] == ["We open at 9."] * 2
    for events in (first, second):
        assert events[-1].text == "We open at 9."
        assert events[-1].stats.thinking_tokens >= 2


def test_the_greeting_at_the_start_tells_whether_replies_begin_amid_a_thought() -> None:
    with server(sending(*OPENED, "[DONE]")) as (model, _):
        model.warm_up()
        assert model.thinks_first
        assert Retracted() not in reply(model)
    with server(sending(*REPLY, "[DONE]")) as (model, _):
        model.warm_up()
        assert not model.thinks_first


def test_a_server_that_stops_thinking_first_is_believed_again() -> None:
    """It was started anew, with a parser of its own or with another template."""
    with server(sending(*REPLY, "[DONE]")) as (model, _):
        model.thinks_first = True
        assert reply(model)[-1].text == "We open at 8. See you then!"
        assert not model.thinks_first
    with server(sending(*THINKING_SERVERS["reasoning"], chunk(finish="stop"), "[DONE]")) as (model, _):
        model.thinks_first = True
        assert reply(model)[-1].text == "We open at 9."
        assert not model.thinks_first


def test_a_thought_that_the_length_cut_is_not_told() -> None:
    with server(sending(chunk("They ask. We"), chunk(finish="length"), "[DONE]")) as (model, _):
        model.thinks_first = True
        *events, last = reply(model)
        assert (events, last.text, last.reason) == ([Thinking()], "", "length")
        assert model.thinks_first
