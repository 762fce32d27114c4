"""How long the caller must be quiet before the turn is theirs no more: a pure function of what is known.

Silence alone is a poor judge: people pause in the middle of sentences for as long as they pause after them.
The end-of-turn detector hears the melody, the recogniser's closing mark and the last words show a sentence
that goes on, a number that is being dictated shows itself, and a caller who has paused long once will do so
again.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.agent import Patience
from pipeline.turns.completeness import ExpectedAnswer, is_fragment, is_short_answer, needs_no_mark, tail

_PATIENCE = Patience()


@dataclass(frozen=True)
class TurnPolicy:
    """Times are milliseconds of silence since the true end of speech; the rest are probabilities and a share.

    On the pause set of `bench/endpoint.py` the defaults cut off fewer than one in twenty hesitations that are
    inside a sentence, with a third of a second to wait at the median; a silence alone would have to be 1.6 s.
    """

    soft_end_ms: float = _PATIENCE.soft_end_ms
    """When it is judged whether the turn is over. The detector was trained on so much silence; it tells as
    much after an eighth of a second, and less later: after half a second most hesitations are ends to it."""
    min_silence_ms: float = _PATIENCE.min_silence_ms
    """Before a turn that sounds and reads finished is committed. The final words and the detector's answer
    are there a little sooner; every 20 ms less would cut off one hesitation in 400 more."""
    unsure_silence_ms: float = 2000.0
    """Before a turn is committed that the detector has not judged, or at least this where the transcript does
    not end like a sentence."""
    unfinished_silence_ms: float = 2500.0
    """At least this after a tail that cannot end a sentence, or inside a number or an address."""
    max_silence_ms: float = _PATIENCE.max_silence_ms
    """The hard limit: after so much silence every turn is over. One hesitation in a hundred lasts longer."""
    sure: float = 0.7
    """The detector's probability from which it asks for no more than the minimum."""
    sure_closing: float = 0.9
    """The recogniser's probability of the closing mark from which it asks for no more than the minimum: six
    ends in ten reach it, and one hesitation in twenty that is inside a sentence."""
    detector_share: float = 0.3
    """How far towards the maximum the detector goes beside a transcript; the closing mark goes all the way,
    for it tells ends from hesitations better."""

    @classmethod
    def of(cls, patience: Patience) -> TurnPolicy:
        """An agent's policy."""
        return cls(
            soft_end_ms=patience.soft_end_ms,
            min_silence_ms=patience.min_silence_ms,
            max_silence_ms=patience.max_silence_ms,
        )


def required_silence_ms(
    policy: TurnPolicy,
    *,
    probability: float | None,
    transcript: str,
    closing: float | None = None,
    expecting: ExpectedAnswer = "",
    longest_pause_ms: float = 0.0,
) -> float:
    """Milliseconds of silence after which the turn is committed.

    Never rises with the detector's `probability` (None: not judged yet) or with `closing`, the recogniser's
    probability that the transcript ends with its closing mark (None: not known); lies within the policy's
    minimum and maximum. `transcript`: the turn so far. `expecting`: what the agent has asked for.
    `longest_pause_ms`: the longest pause inside this caller's turns so far.
    """
    if expecting == "yes_no" and is_short_answer(transcript):
        return policy.min_silence_ms
    doubt = _doubt(probability, policy.sure)
    if closing is not None and not is_fragment(transcript):
        whole = expecting in ("digits", "email") or needs_no_mark(transcript)
        doubt = max(policy.detector_share * doubt, 0.0 if whole else _doubt(closing, policy.sure_closing))
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
