"""What a reply cost and what speculation did for it, counting committed tokens only."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class ReplyStats:
    """Figures of one reply. Times are the injected clock's seconds; None where it did not come to that.

    `passes` counts runs of the target that gave logits (pure prefill chunks are not counted). A drafted token
    is one that was checked in a pass; an accepted one was also committed, so a draft beyond the end of the
    reply is never counted as accepted. `accepted_per_position[i]` counts passes whose draft's token i was.
    `thinking_tokens` and `thinking_seconds` are those of thoughts, which nobody hears: from the token that
    opens one to the token that closes it. A server's tokens are what it says, or else the pieces it sends.
    """

    verification: str = "coupled"
    started: float = 0.0
    first_token: float | None = None
    first_sentence: float | None = None
    finished: float | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    prefilled_tokens: int = 0
    passes: int = 0
    drafts: int = 0
    whole_drafts: int = 0
    committed_tokens: int = 0
    drafted: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    accepted_per_position: list[int] = field(default_factory=list)
    reply_draft_tokens: int = 0
    guard_count: int = 0
    thinking_tokens: int = 0
    thinking_seconds: float = 0.0
    dropped_messages: int = 0

    def count_draft(self, source: str, tokens: int) -> None:
        self.drafts += 1
        self.drafted[source] += tokens

    def count_accepted(self, source: str, position: int, *, last: bool) -> None:
        self.accepted[source] += 1
        self.whole_drafts += last
        missing = position + 1 - len(self.accepted_per_position)
        self.accepted_per_position.extend([0] * missing)
        self.accepted_per_position[position] += 1

    def discount_accepted(self, source: str, position: int) -> None:
        """Take back an accepted token that the end of the text cut off."""
        self.accepted[source] -= 1
        self.accepted_per_position[position] -= 1

    @property
    def reply_draft_accepted(self) -> int:
        """Tokens of the previous revision's reply that this reply kept."""
        return self.accepted["reply"]

    @property
    def ttft(self) -> float | None:
        """Seconds from the start to the first token: prompt length and caching, not speculation."""
        return None if self.first_token is None else self.first_token - self.started

    @property
    def first_sentence_time(self) -> float | None:
        """Seconds from the first token to the end of the first sentence: what speculation shortens."""
        if self.first_sentence is None or self.first_token is None:
            return None
        return self.first_sentence - self.first_token

    @property
    def tokens_per_pass(self) -> float:
        return self.committed_tokens / self.passes if self.passes else 0.0

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted over drafted tokens; None where nothing was drafted."""
        drafted = self.drafted.total()
        return self.accepted.total() / drafted if drafted else None

    @property
    def expected_tokens_per_pass(self) -> float | None:
        """(1 - a^(g+1)) / (1 - a) of 2211.17192, with this reply's chance a that a reached token is accepted.

        g is the mean draft length. Unlike `acceptance_rate`, a leaves out drafted tokens behind a rejection.
        """
        if not self.drafts:
            return None
        accepted = self.accepted.total()
        rejected = self.drafts - self.whole_drafts
        alpha = accepted / (accepted + rejected)
        length = self.drafted.total() / self.drafts
        return length + 1.0 if alpha == 1.0 else (1.0 - alpha ** (length + 1.0)) / (1.0 - alpha)

    def as_dict(self) -> dict[str, Any]:
        """Everything, under vLLM's metric names where it has one."""
        return {
            "verification": self.verification,
            "ttft": self.ttft,
            "first_sentence_time": self.first_sentence_time,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "prefilled_tokens": self.prefilled_tokens,
            "completion_tokens": self.committed_tokens,
            "passes": self.passes,
            "tokens_per_pass": self.tokens_per_pass,
            "expected_tokens_per_pass": self.expected_tokens_per_pass,
            "acceptance_rate": self.acceptance_rate,
            "spec_decode_num_drafts": self.drafts,
            "spec_decode_num_draft_tokens": self.drafted.total(),
            "spec_decode_num_accepted_tokens": self.accepted.total(),
            "spec_decode_num_accepted_tokens_per_pos": list(self.accepted_per_position),
            "drafted": dict(self.drafted),
            "accepted": dict(self.accepted),
            "reply_draft_tokens": self.reply_draft_tokens,
            "reply_draft_accepted": self.reply_draft_accepted,
            "guard_count": self.guard_count,
            "thinking_tokens": self.thinking_tokens,
            "thinking_ms": round(self.thinking_seconds * 1000, 1),
            "dropped_messages": self.dropped_messages,
        }
