// The stages of a turn, by the marks they begin and end with. Times are milliseconds after the caller's last sound.

export const STAGES = [
  { name: "endpoint", label: "End of turn", from: "speech_end", to: "commit" },
  { name: "asr", label: "Recognition", from: "speech_end", to: "asr_final" },
  { name: "ttft", label: "First token", from: "llm_start", to: "llm_first_token" },
  { name: "first_sentence", label: "First sentence", from: "llm_first_token", to: "llm_first_sentence" },
  { name: "tts", label: "Voice", from: "tts_start", to: "tts_first_audio" },
  { name: "after_commit", label: "Release", from: "commit", to: "audio_sent" },
];

export const milliseconds = (ms) => `${Math.round(ms).toLocaleString("en")} ms`;

export function percentile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)];
}
