"""A reply explained pass by pass: what was drafted, the verdict, what was kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from llm.engine import Pass
from llm.language_model import LanguageModel
from llm.prompt import Message
from llm.reply_stream import Finished
from llm.sampling import Sampling
from llm.verify import Verification


@dataclass(frozen=True, slots=True)
class ExplainedPass:
    """One pass. `own`: the token the target put after the accepted ones; None where the reply ended there."""

    source: str
    drafted: tuple[str, ...]
    accepted: int
    own: str | None
    ended: bool

    @property
    def kept(self) -> int:
        return self.accepted + (self.own is not None)

    @property
    def verdict(self) -> str:
        """In words, as one would explain it to a person."""
        said = "the reply ends" if self.own is None else repr(self.own)
        if not self.drafted:
            return said if self.own is None else f"no draft, writes {said}"
        if self.accepted == len(self.drafted):
            return f"all accepted, {said if self.own is None else 'adds ' + said}"
        becomes = said if self.own is None else f"becomes {said}"
        parts = [f"{self.accepted} accepted"] if self.accepted else []
        parts.append(f"{self.drafted[self.accepted]!r} {becomes}")
        if discarded := len(self.drafted) - self.accepted - 1:
            parts.append(f"{discarded} discarded")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Explanation:
    """A whole reply: its text, how it ended, its passes and its figures."""

    text: str
    reason: str
    passes: tuple[ExplainedPass, ...]
    stats: dict[str, Any]

    @property
    def tokens(self) -> int:
        return sum(p.kept for p in self.passes)

    @property
    def tokens_per_pass(self) -> float:
        return self.tokens / len(self.passes) if self.passes else 0.0

    def as_dict(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "reason": self.reason,
            "tokens": self.tokens,
            "tokens_per_pass": self.tokens_per_pass,
            "passes": [
                {
                    "source": p.source,
                    "draft": list(p.drafted),
                    "accepted": p.accepted,
                    "own": p.own,
                    "verdict": p.verdict,
                    "kept": p.kept,
                }
                for p in self.passes
            ],
            "stats": self.stats,
        }

    def render(self, console: Console) -> None:
        """Print a table, a row a pass: accepted tokens green, the rejected one red, the rest dim."""
        table = Table(title=f"{len(self.passes)} passes", title_justify="left")
        table.add_column("pass", justify="right")
        table.add_column("from", style="cyan")
        table.add_column("draft", overflow="fold")
        table.add_column("verdict", overflow="fold")
        table.add_column("kept", justify="right")
        for number, this in enumerate(self.passes, 1):
            # Tokens are text, also where they look like the console's markup.
            table.add_row(str(number), this.source, _coloured(this), Text(this.verdict), str(this.kept))
        console.print(table)
        console.print(Text(self.text, style="bold"))
        console.print(
            f"{self.tokens} tokens in {len(self.passes)} passes: {self.tokens_per_pass:.1f} tokens a pass, "
            f"{self.stats['verification']} verification"
        )


def _coloured(this: ExplainedPass) -> Text:
    text = Text()
    for i, token in enumerate(this.drafted):
        style = "green" if i < this.accepted else "red strike" if i == this.accepted else "dim"
        text.append(token.replace("\n", "\u23ce"), style=style)
    return text


def explained(model: LanguageModel, passes: Sequence[Pass], finished: Finished) -> Explanation:
    """Put the passes of a finished reply into words."""

    def spelled(token: int) -> str:
        return model.tokenizer.decode((token,))

    told = tuple(
        ExplainedPass(
            this.draft.source,
            tuple(spelled(i) for i in this.draft.ids),
            this.accepted,
            spelled(this.committed[-1]) if len(this.committed) > this.accepted else None,
            this.ended,
        )
        for this in passes
    )
    return Explanation(finished.text, finished.reason, told, finished.stats.as_dict())


def explain(
    model: LanguageModel,
    messages: Sequence[Message],
    sampling: Sampling,
    *,
    taught: str = "",
    verification: Verification = "coupled",
) -> Explanation:
    """Answer the messages in a call of its own and tell how the reply came about, pass by pass.

    `taught`: what a call teaches its drafters when it begins, a fact a line (`Conversation.learn`).
    `verification`: as in `LanguageModel.open`.
    """
    conversation = model.open(verification=verification)
    conversation.learn(taught)
    passes: list[Pass] = []
    try:
        for event in conversation.reply(messages, sampling, cancelled=lambda: False, passes=passes):
            if isinstance(event, Finished):
                return explained(model, passes, event)
    finally:
        conversation.close()
    raise AssertionError("a reply always finishes")
