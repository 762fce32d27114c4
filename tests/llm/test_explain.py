"""The worked example that explains speculative decoding to people, reproduced pass by pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from rich.console import Console

from llm.drafters.base import Draft, ReplyState
from llm.engine import Pass
from llm.explain import ExplainedPass, Explanation, explain, explained
from llm.language_model import Finished, LanguageModel, Message, Sampling
from llm.tokenizer import Tokenizer
from tests.llm.harness import Scripted
from tests.llm.toys import ToyTarget

WORDS = ["Your", "appointment", "is", "confirmed", "for", "Friday", "at", "ten", "in", "the", "morning", "."]
OTHERS = ["Monday", "evening"]
DRAFTS = ("Your appointment is", "for Monday at", "at ten in", "evening .", ".")
PASSES = ((4, "all accepted"), (2, "becomes"), (4, "all accepted"), (1, "becomes"), (1, "all accepted"))
PROMPT = [Message("user", "When is my appointment?")]
END, VOCABULARY = 90, 100
IDS = {word: 1 + i for i, word in enumerate([*WORDS, *OTHERS])}


class WordTokenizer(Tokenizer):
    """One id a word, as the example counts."""

    def __init__(self) -> None:
        self.chat_template = None
        self.bos = self.eos = ""
        self.ends = frozenset({END})
        self.size = VOCABULARY
        self.bare = lambda token: None
        names = {i: word for word, i in IDS.items()}
        self.token_bytes = lambda token: (names[token] + " ").encode() if token in names else b""
        self.encode = lambda text: tuple(IDS[w] for w in text.split() if w in IDS)

    def encode_markup(self, text: str) -> tuple[int, ...]:
        return (95, 96)


def target() -> ToyTarget:
    script = [*(IDS[w] for w in WORDS), END]

    def rows(ids: Sequence[int]) -> np.ndarray:
        logits = np.zeros(VOCABULARY)
        start = max(i for i, token in enumerate(ids) if token == 96) + 1
        logits[script[min(len(ids) - start, len(script) - 1)]] = 9.0
        return logits

    return ToyTarget(rows, VOCABULARY)


@pytest.fixture
def explanation() -> Explanation:
    drafts = iter(DRAFTS)

    def guess(state: ReplyState, budget: int) -> Draft:
        return Draft(tuple(IDS[w] for w in next(drafts).split()), "example")

    model = LanguageModel(target(), WordTokenizer(), drafters=())
    conversation = model.open()
    conversation._gate = Scripted(guess)  # type: ignore[assignment]
    passes: list[Pass] = []
    *_, last = conversation.reply(PROMPT, Sampling(), cancelled=lambda: False, passes=passes)
    assert isinstance(last, Finished)
    return explained(model, passes, last)


def test_twelve_tokens_in_five_passes(explanation: Explanation) -> None:
    assert explanation.text.split() == WORDS
    assert (explanation.tokens, len(explanation.passes)) == (12, 5)
    assert explanation.tokens_per_pass == explanation.stats["tokens_per_pass"] == 2.4
    assert [p.kept for p in explanation.passes] == [kept for kept, _ in PASSES]
    for this, (_, verdict) in zip(explanation.passes, PASSES, strict=True):
        assert verdict in this.verdict
    assert explanation.passes[1].verdict == "1 accepted, 'Monday ' becomes 'Friday ', 1 discarded"
    assert explanation.passes[4].verdict == "all accepted, the reply ends"
    assert explanation.stats["spec_decode_num_draft_tokens"] == 12
    assert explanation.stats["spec_decode_num_accepted_tokens"] == 8
    assert explanation.stats["spec_decode_num_accepted_tokens_per_pos"] == [4, 2, 2]


def test_it_is_drawn_for_people_and_for_programs(explanation: Explanation) -> None:
    console = Console(record=True, width=100)
    explanation.render(console)
    drawn = console.export_text()
    assert "12 tokens in 5 passes: 2.4 tokens a pass, coupled verification" in drawn
    assert drawn.count("example") == 5
    as_dict = explanation.as_dict()
    assert [p["kept"] for p in as_dict["passes"]] == [4, 2, 4, 1, 1]
    assert as_dict["passes"][0]["draft"] == ["Your ", "appointment ", "is "]


def test_brackets_in_a_reply_are_shown_as_they_are() -> None:
    passes = (ExplainedPass("answer", ("[/", "b"), 0, "]", False), ExplainedPass("", (), 0, "[a]", False))
    console = Console(record=True, width=100)
    Explanation("[/][a]", "eos", passes, {"verification": "coupled"}).render(console)
    drawn = console.export_text()
    assert "'[/' becomes ']', 1 discarded" in drawn
    assert "no draft, writes '[a]'" in drawn


def test_what_a_call_teaches_its_drafters_is_drafted_here_too() -> None:
    model = LanguageModel(target(), WordTokenizer(), drafters=("phrase",))
    plain, taught = (explain(model, PROMPT, Sampling(), taught=text) for text in ("", " ".join(WORDS)))
    assert taught.text == plain.text
    assert len(taught.passes) < len(plain.passes) == len(WORDS) + 1


def test_a_lossy_rule_is_named_wherever_a_reply_is_told() -> None:
    lossy = explain(LanguageModel(target(), WordTokenizer()), PROMPT, Sampling(), verification="relaxed")
    console = Console(record=True, width=100)
    lossy.render(console)
    assert "lossy" in console.export_text()
    assert "lossy" in lossy.as_dict()["stats"]["verification"]


def test_any_reply_can_be_explained() -> None:
    explanation = explain(LanguageModel(target(), WordTokenizer()), PROMPT, Sampling(max_tokens=5))
    assert explanation.reason == "length"
    assert explanation.tokens == 5
    assert sum(p.kept for p in explanation.passes) == 5
