"""How long the caller must be quiet before the turn is theirs no more: a pure function of what is known.

Silence alone is a poor judge: people pause in the middle of sentences for as long as they pause after them.
The end-of-turn detector hears the melody, the recogniser's closing mark and the last words show a sentence
that goes on, a number that is being dictated shows itself, and a caller who has paused long once will do so
again.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.turn_tail import Expecting, ends_with_digit, is_yes_or_no, tail


@dataclass(frozen=True)
class TurnPolicy:
    """All in milliseconds of silence since the true end of speech; the doubts are without unit.

    The defaults come from `bench/endpoint.py`, which prints what they cost beside a silence alone.
    """

    soft_end_ms: float = 200.0
    """When the answer is drafted and the detector is asked."""
    min_silence_ms: float = 280.0
    """Before a turn that sounds and reads finished is committed: about when the final words are known."""
    unsure_silence_ms: float = 1600.0
    """Before a turn is committed that the detector has not judged, or at least this where the transcript does
    not end like a sentence."""
    unfinished_silence_ms: float = 2000.0
    """At least this after a tail that cannot end a sentence, or inside a number or an address."""
    max_silence_ms: float = 2500.0
    """The hard limit: after so much silence every turn is over."""
    sure: float = 0.7
    """The detector's probability from which it asks for no more than the minimum."""
    sure_closing: float = 0.85
    """The recogniser's probability of the closing mark from which it asks for no more than the minimum."""
    detector_share: float = 0.3
    """How far towards the maximum the detector goes beside a transcript; a closing mark goes all the way."""


def required_silence_ms(
    policy: TurnPolicy,
    *,
    probability: float | None,
    transcript: str,
    closing: float | None = None,
    expecting: Expecting = "",
    longest_pause_ms: float = 0.0,
) -> float:
    """Milliseconds of silence after which the turn is committed.

    Never rises with the detector's `probability` (None: not judged yet) or with `closing`, the recogniser's
    probability that the transcript ends with its closing mark (None: not known); lies within the policy's
    minimum and maximum. `transcript`: the turn so far. `expecting`: what the agent has asked for.
    `longest_pause_ms`: the longest pause inside this caller's turns so far.
    """
    if expecting == "yes_no" and is_yes_or_no(transcript):
        return policy.min_silence_ms
    doubt = _doubt(probability, policy.sure)
    if closing is not None:
        marked = expecting != "" or ends_with_digit(transcript)  # what was asked for and numbers need no mark
        doubt = max(policy.detector_share * doubt, 0.0 if marked else _doubt(closing, policy.sure_closing))
    required = policy.min_silence_ms + doubt * (policy.max_silence_ms - policy.min_silence_ms)
    reads = tail(transcript, expecting)
    if reads == "unfinished":
        required = max(required, policy.unfinished_silence_ms)
    elif reads == "doubtful" or probability is None:
        required = max(required, policy.unsure_silence_ms)
    # Longer than this caller's pauses, as far as a quick answer can still be quick.
    required = max(required, min(1.1 * longest_pause_ms, policy.unsure_silence_ms))
    return min(max(required, policy.min_silence_ms), policy.max_silence_ms)


def _doubt(probability: float | None, sure: float) -> float:
    """From 1 at no probability straight to 0 where it is sure."""
    return 0.0 if probability is None else max(0.0, 1.0 - probability / sure)
