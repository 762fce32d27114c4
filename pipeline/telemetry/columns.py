"""What each column of the latency log means: the words of its documentation, and the order they stand in."""

from __future__ import annotations

COLUMNS: dict[str, str] = {
    "id": "the row's number; later turns have higher ones",
    "call_id": "which call",
    "turn": "which turn of the call; 0 is what the agent says unasked",
    "revision": "which attempt at the turn was answered; dropped noise uses numbers up, too",
    "revisions": "attempts at the turn: one more each time that the caller went on after a pause",
    "agent": "who answered",
    "origin": "the way in: web, talk, a carrier's name",
    "caller": "the caller's number, masked unless `mask_caller_numbers = false`",
    "started_at": "when the caller began to speak, UTC",
    "status": "`completed`, `interrupted`, `cut` (longest reply reached), `failed` (a stage failed, or "
    "nothing of the answer had sound), or why the turn was not answered: how the call ended, or `replaced` "
    "by a typed one",
    "speech_start_ms": "the caller began to speak. Marks are in milliseconds from the true end of the "
    "caller's speech, and NULL where they did not happen",
    "speech_end_ms": "the true end of speech: the zero of all marks (of a typed turn that is the commit)",
    "soft_end_ms": "quiet for long enough to judge whether the turn is over",
    "asr_final_ms": "the final transcript",
    "llm_start_ms": "the language model was asked. With speculation `llm_*` and `tts_*` can precede "
    "`commit_ms`",
    "llm_first_token_ms": "its first token; a reasoning model's thoughts count",
    "llm_first_sentence_ms": "the end of its first sentence",
    "tts_start_ms": "the voice began with it",
    "tts_first_audio_ms": "the voice's first audio",
    "commit_ms": "the turn was decided to be over",
    "audio_sent_ms": "the answer's first audible sample on the wire",
    "audio_heard_ms": "the same as heard, where the page or the carrier reports it",
    "reply_end_ms": "the answer had been heard to its end",
    "interrupted_ms": "the caller interrupted it",
    "endpoint_ms": "end of speech to the decision that the turn is over",
    "asr_ms": "end of speech to the final transcript",
    "ttft_ms": "language model's start to its first token: the prompt's share, which drafts do not shorten",
    "first_sentence_ms": "first token to the end of the first sentence: what speculative decoding shortens",
    "tts_ms": "voice's start to its first audio",
    "after_commit_ms": "decision to the first audible sample; zero at best",
    "voice_to_voice_ms": "end of speech to the first audible sample: what the caller hears as silence",
    "prompt_tokens": "tokens of the prompt",
    "cached_tokens": "those of them that were read before this turn's answer was asked for",
    "committed_tokens": "tokens of the answer",
    "passes": "runs of the model for them",
    "tokens_per_pass": "committed tokens over passes: 1 without speculation",
    "draft_fate": "how the reply drafted before the decision fared: `whole`, `part` (kept up to its first "
    "difference), `none` (there was no draft), `wasted`",
    "interrupted": "1 where the caller interrupted the answer",
    "audio_seconds": "the answer's audio, in seconds",
    "caller_text": "what the caller said. The texts are NULL with `store_transcripts = false`",
    "reply_text": "what the agent was to say, without a reasoning model's thoughts",
    "heard_text": "what of it the caller had heard, without sentences that have no sound; only that stays "
    "in the conversation",
    "extra": "the rest as JSON: `drafted` and `accepted` tokens by drafter and position, `refutations`, "
    "`wasted_tokens`, `draft_skipped` (why no draft was made), `longest_pause_ms`, `false_interruptions`, "
    "`echoes`, `cut_off`, `hold_phrase`, `made_again`, and a reasoning model's `thinking_tokens` and "
    "`thinking_ms`",
}
"""By the name of the column in the table `turns`."""
