"""What a model only thinks is not said: every mark that models use, cut anywhere, and answers about marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from llm.language_model import Finished, LanguageModel, Message, Retracted, Sampling, Sentence, Thinking
from llm.thoughts import ASSUMED, BARE_CHANNELS, PHRASES, Thoughts, left_open
from llm.tokenizer import Tokenizer, Vocabulary
from tests.llm.test_reply_ends import TOKENIZER, answer, writing
from tests.llm.toys import END, byte_tokenizer


def ways(text: str) -> Iterator[list[str]]:
    """The text whole, in characters, and in pieces cut at every two places."""
    yield [text]
    yield list(text)
    for first in range(len(text) + 1):
        for second in range(first, len(text) + 1, 3):
            yield [text[:first], text[first:second], text[second:]]


def said(
    pieces: Sequence[str],
    opened: tuple[str, ...] = (),
    phrases: dict[str, str] = PHRASES | BARE_CHANNELS,
) -> str:
    thoughts = Thoughts(opened, phrases)
    text = ""
    for split in [*map(thoughts.push, pieces), thoughts.flush()]:
        text = split.text if split.recall else text + split.text
    return text


MARKED = {
    "<think>The caller wants hours. We open at 9.</think>We open at nine.": "We open at nine.",
    "<think>\nHours?\n</think>\n\nWe open.": "We open.",
    "\n<thinking>Hm.</thinking>\nWe open.": "\nWe open.",
    "<reasoning>Hm.</reasoning> We open.": "We open.",
    "<thought>Hm.</thought>We open.": "We open.",
    "<reflection>Hm.</reflection>We open.": "We open.",
    "<THINK>Hm.</THINK>We open.": "We open.",
    "<thinking>a<reflection>b</reflection>c</thinking>We open.": "We open.",
    "<think>I will write <think> here.</think>We open.": "We open.",
    '<think>They said "hello"</think>We open.': "We open.",
    "<think>`</think>` ends it.</think>We open.": "We open.",
    "[THINK]Hm.[/THINK]We open.": "We open.",
    "◁think▷Hm.◁/think▷We open.": "We open.",
    "<seed:think>Hm.</seed:think>We open.": "We open.",
    "<longcat_think>Hm.</longcat_think>We open.": "We open.",
    "<|START_THINKING|>Hm.<|END_THINKING|><|START_RESPONSE|>We open.<|END_RESPONSE|>": "We open.",
    "<|begin_of_thought|>Hm.<|end_of_thought|>\n\n<|begin_of_solution|>We open.": "We open.",
    "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>We.": "We.",
    "<|channel|>analysis Hm. <|channel|>final We open.": "We open.",
    "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>So."
    "<|end|><|start|>assistant<|channel|>final<|message|>We open.<|return|>": "We open.",
    "<|channel|>final<|message|>We open.": "We open.",
    "analysisThe caller asks.assistantfinalWe open.": "We open.",
    "<|channel>thought\nHm.<channel|>We open.": "We open.",
    "Here is my thought process: Hm. Here is my response: We open.": "We open.",
    "<think>Hm.</think><answer>We open.</answer>": "We open.",
    "<think>a</think>We open. <think>b</think> At nine.": "We open. At nine.",
    "We open.<think>b</think>At nine.": "We open. At nine.",
    "We open <think>b</think>at nine.": "We open at nine.",
    "<think></think>We open.": "We open.",
    "<think >Hm.</think >We open.": "We open.",
    "< think>Hm.</ think>We open.": "We open.",
    '<think type="hidden" id=3>Hm.</think>We open.': "We open.",
    'Sure. <think id="1">Hm.</think> We open.': "Sure. We open.",
    '<thinking budget="9">never closed': "",
    "<think/>We open.": "We open.",
    "<reason>Hm.</reason>We open.": "We open.",
    "<scratch_pad>Hm.</scratch_pad>We open.": "We open.",
    "[think]Hm.[/think]We open.": "We open.",
    "[Reasoning]Hm.[/Reasoning]We open.": "We open.",
    "{think}Hm.{/think}We open.": "We open.",
    "【think】Hm.【/think】We open.": "We open.",
    "＜think＞Hm.＜/think＞We open.": "We open.",
    "<think>a<think>b</think>c</think>We open.": "We open.",
    "<think>a<think>b</think>c<think>d</think>e</think></think>We open.": "We open.",
    "<think>never closed": "",
    "<think>closed in part</thin": "",
    "[THINK]": "",
    "The caller wants hours. So:\n</think>\n\nWe open.": "We open.",
    "They want hours </think> We open.": "We open.",
    "They want hours</think>We open.": "We open.",
}
"""What models write, and what of it is said."""

ABOUT = [
    "The <think> tag opens a thought and </think> closes it.",
    "Write `<think>` first, then `</think>`. Is that clear?",
    'It begins with "<think>" and ends with "</think>".',
    "End it with </think>.",
    "Put it in a tag (<think>).",
    "```\n<think>\nhm\n</think>\n``` is an example.",
    "Say 5 < 7, a<b>c</b>, [1] and [OK]. The thinking> is fine <",
    "analysis of it takes a day.",
    "Here is my number: 5.",
    "<b>Hello</b> <answer>.",
    "Use <thinking hard> now, {name} and {think, [think or (think).",
    "A < b, b < think, < thinking > and [Think] twice.",
    '<thinkpad x="1">Hi.',
]


@pytest.mark.parametrize("text", MARKED)
def test_thoughts_are_not_said_wherever_the_stream_is_cut(text: str) -> None:
    assert {said(pieces) for pieces in ways(text)} == {MARKED[text]}


@pytest.mark.parametrize("text", ABOUT)
def test_an_answer_about_the_marks_is_said_whole(text: str) -> None:
    assert {said(pieces) for pieces in ways(text)} == {text}


@pytest.mark.parametrize("text", ["Hm.\n</think>\n\nWe open.", "Hm</think>We open.", "a </think> we open."])
def test_a_thought_that_the_prompt_opened_ends_with_its_mark(text: str) -> None:
    expected = text.partition("</think>")[2].lstrip()
    for opened in (("think",), ASSUMED):
        assert {said(pieces, opened) for pieces in ways(text)} == {expected}


@pytest.mark.parametrize(
    ("header", "opened"),
    [
        ("<|im_end|>\n<|im_start|>assistant\n", ()),
        ("<|im_end|>\n<|im_start|>assistant\n<think>\n", ("think",)),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", ()),
        ("<｜Assistant｜><think>", ("think",)),
        ("<｜Assistant｜></think>", ()),
        ("<|start|>assistant", ()),
        ("<|start|>assistant<|channel|>analysis<|message|>", ("channel",)),
        ("<|start|>assistant<|channel|>final<|message|>", ()),
    ],
)
def test_a_header_tells_whether_the_reply_begins_amid_a_thought(header: str, opened: tuple[str, ...]) -> None:
    assert left_open(header) == opened


# ---- the embedded model's replies

THOUGHT = "<think>The caller asks. STOP. I say 12 Park Street.</think>"
ANSWER = "We’re at 12 Park Street. Come in!"


@pytest.mark.parametrize("stop", [(), ("STOP",), ("Come",)])
@pytest.mark.parametrize("drafted", ["", THOUGHT, THOUGHT + ANSWER, THOUGHT + "We are closed.", ANSWER])
def test_a_reply_leaves_its_thoughts_out_whatever_was_drafted(stop: tuple[str, ...], drafted: str) -> None:
    conversation = LanguageModel(writing(THOUGHT + ANSWER), TOKENIZER).open()
    sampling = Sampling(max_tokens=300, stop=stop)
    events, last = answer(conversation, sampling, draft=TOKENIZER.encode(drafted))
    text = ANSWER.partition("Come")[0] if "Come" in stop else ANSWER
    assert last.text == "".join(e.text for e in events if isinstance(e, Sentence)) == text
    assert TOKENIZER.decode(last.ids) == THOUGHT + text, "the ids are all that was committed"
    assert any(isinstance(e, Thinking) for e in events)
    assert 0 < last.stats.thinking_tokens <= len(THOUGHT)
    assert last.stats.thinking_seconds > 0


def test_a_reply_begins_amid_the_thought_that_the_template_opened() -> None:
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
    )
    conversation = LanguageModel(
        writing("\n I say hello.</think>\n\nHello.", tokenizer, opening="<think>\n"), tokenizer
    ).open()
    events, last = answer(conversation, Sampling(max_tokens=100))
    assert (last.text, [e.text for e in events if isinstance(e, Sentence)]) == ("Hello.", ["Hello."])
    assert not any(isinstance(e, Retracted) for e in events)


def test_marks_that_are_special_tokens_are_known_by_their_names() -> None:
    plain = byte_tokenizer()
    special = {"<|im_end|>": END, "<|im_start|>": 257, "[THINK]": 258, "[/THINK]": 259}
    tokenizer = Tokenizer(Vocabulary(plain._bpe.to_str(), special, (END,), 260, None))
    ids = (258, *tokenizer.encode("Hm."), 259, *tokenizer.encode("Hello."))
    conversation = LanguageModel(writing("", tokenizer, ids=ids), tokenizer).open()
    events, last = answer(conversation, Sampling(max_tokens=100))
    assert last.text == "Hello."
    assert last.ids == ids
    assert [e.text for e in events if isinstance(e, Sentence)] == ["Hello."]


def test_the_answer_alone_goes_back_into_the_next_prompt() -> None:
    """Templates leave earlier thoughts out; the cache is kept as far as the ids agree."""
    model = LanguageModel(writing(THOUGHT + ANSWER), TOKENIZER)
    conversation = model.open()
    _, last = answer(conversation, Sampling(max_tokens=300))
    messages = [
        Message("system", "Be brief."),
        Message("user", "Where are you?"),
        Message("assistant", last.text),
    ]
    again = list(
        conversation.reply(
            [*messages, Message("user", "Ok.")], Sampling(max_tokens=300), cancelled=lambda: False
        )
    )[-1]
    assert isinstance(again, Finished)
    assert again.text == ANSWER
    assert again.stats.cached_tokens > 0
