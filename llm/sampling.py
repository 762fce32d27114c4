"""How a reply is drawn: the parameters of one reply, checked when they are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Sampling:
    """Parameters of one reply. Names and meanings are those of the OpenAI and vLLM interfaces.

    `temperature` 0 is greedy. `top_k` 0, `top_p` 1 and `min_p` 0 are off. `repetition_penalty` divides
    (or multiplies, where negative) the logits of every id in prompt and reply; `frequency_penalty` and
    `presence_penalty` look at the reply alone. `bad_words` are never written. `stop` strings end the reply
    and are not part of its text; `max_tokens` ends it. Among the first `min_tokens` tokens neither a stop
    string nor an end token does.

    Raises `ValueError` for a value out of range, naming it.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    bad_words: tuple[str, ...] = ()
    min_tokens: int = 0
    max_tokens: int = 160
    stop: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        rules = (
            (self.temperature >= 0.0, "temperature must be 0 (greedy) or more"),
            (self.top_k >= 0, "top_k must be 0 (off) or more"),
            (0.0 < self.top_p <= 1.0, "top_p must be above 0 and at most 1 (off)"),
            (0.0 <= self.min_p < 1.0, "min_p must be at least 0 (off) and below 1"),
            (self.repetition_penalty > 0.0, "repetition_penalty must be above 0; 1 is off"),
            (-2.0 <= self.frequency_penalty <= 2.0, "frequency_penalty must lie between -2 and 2"),
            (-2.0 <= self.presence_penalty <= 2.0, "presence_penalty must lie between -2 and 2"),
            (self.max_tokens >= 1, "max_tokens must be 1 or more"),
            (0 <= self.min_tokens <= self.max_tokens, "min_tokens must lie between 0 and max_tokens"),
            (all(self.stop), "a stop string must not be empty"),
            (all(self.bad_words), "a bad word must not be empty"),
        )
        for holds, problem in rules:
            if not holds:
                raise ValueError(f"sampling: {problem}")
