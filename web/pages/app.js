// The page: one button, and what a call tells it.

import { Call, CallError, diagnose, keepToken, takeTokenFromAddress } from "./call.js";
import { History } from "./history.js";
import { Meter } from "./meter.js";
import { Microphone, MicrophoneError, WIRE_RATE } from "./microphone.js";
import { Notice } from "./notice.js";
import { Playback } from "./playback.js";
import { Transcript } from "./transcript.js";
import { LiveTurn } from "./turn.js";
import { Waterfall } from "./waterfall.js";

const STATES = {
  idle: "Ready",
  connecting: "Connecting…",
  listening: "Listening",
  hearing: "Hearing you",
  thinking: "Thinking",
  speaking: "Speaking",
  paused: "Listening to you…",
};

const $ = (id) => document.getElementById(id);
const transcript = new Transcript($("transcript"), $("transcript-empty"));
const waterfall = new Waterfall($("waterfall"), $("headline"), $("caption"));
const callerMeter = new Meter($("caller-meter"));
const agentMeter = new Meter($("agent-meter"));
const notice = new Notice($("notice"));
const history = new History($("history"), $("history-empty"), $("summary"), showTurn);
const turn = new LiveTurn();

let running = null; // {call, microphone, playback, startedAt}
let speaking = null; // the item being said
let answering = null; // the latest response; none from the end of the caller's words to the start of its answer
let attempt = 0; // counts the presses of the button: what an earlier one still opens is not wanted any more

function setState(state) {
  document.body.dataset.state = state;
  $("status").textContent = STATES[state];
  const inCall = state !== "idle";
  $("call").setAttribute("aria-pressed", String(inCall));
  $("call-label").textContent = inCall ? "End call" : "Start call";
}

const state = () => document.body.dataset.state;

async function start() {
  notice.hide();
  if (!window.isSecureContext || !navigator.mediaDevices) return notice.problem("insecure");
  setState("connecting");
  const mine = ++attempt;
  const parts = {};
  try {
    parts.microphone = await Microphone.open((pcm, rms) => {
      callerMeter.show(rms);
      running?.call.sendAudio(pcm);
    });
    parts.playback = await Playback.open(onPlayed);
    parts.call = await Call.open(handlers);
  } catch (error) {
    release(parts);
    if (mine !== attempt) return;
    setState("idle");
    const problem = await problemOf(error);
    if (mine === attempt) notice.problem(problem, error.message);
    return;
  }
  if (mine !== attempt) return release(parts);
  begin(parts);
}

function begin({ call, microphone, playback }) {
  transcript.clear();
  history.clear();
  turn.clear();
  waterfall.show({});
  $("agent").textContent = call.session.rejoinder.agent;
  if (microphone.rate !== WIRE_RATE) call.sendInputRate(microphone.rate);
  microphone.onLost(() => {
    stop();
    notice.problem("microphone_lost");
  });
  running = { call, microphone, playback, startedAt: performance.now() };
  if (state() === "connecting") setState("listening");
}

function stop() {
  attempt++;
  const parts = running;
  running = null;
  if (parts) release(parts);
  speaking = null;
  turn.clear();
  callerMeter.reset();
  agentMeter.reset();
  setState("idle");
}

function release({ call, microphone, playback }) {
  call?.close();
  microphone?.close();
  playback?.close();
}

// What is neither the microphone's nor the call's is the sound's, unless its parts could not be fetched.
async function problemOf(error) {
  const explained = error instanceof MicrophoneError || (error instanceof CallError && error.code !== "no_connection");
  if (explained) return error.code;
  const problem = await diagnose();
  return error instanceof CallError || problem === "unreachable" ? problem : "no_sound";
}

// ---- what the server tells

const handlers = {
  "input_audio_buffer.speech_started": () => setState(speaking ? "paused" : "hearing"),
  "input_audio_buffer.speech_stopped": () => {
    answering = null;
    setState("thinking");
  },
  "rejoinder.speech_dismissed": ({ item_id }) => {
    transcript.callerSaid(item_id, "");
    if (state() === "hearing") setState("listening");
  },
  "conversation.item.input_audio_transcription.delta": ({ item_id, delta }) => transcript.callerSays(item_id, delta),
  "conversation.item.input_audio_transcription.completed": ({ item_id, transcript: text }) => {
    transcript.callerSaid(item_id, text);
    if (!text && state() === "thinking") setState("listening");
  },
  "response.created": ({ response }) => {
    answering = response.id;
    setState("thinking");
  },
  "response.output_audio_transcript.delta": ({ item_id, delta }) => transcript.agentSays(item_id, delta),
  "response.output_audio.delta": ({ item_id, samples }) => {
    speaking = item_id;
    if (state() === "thinking" || state() === "listening") setState("speaking");
    running?.playback.play(item_id, samples);
  },
  "response.done": ({ response }) => {
    const [item] = response.output;
    const text = item.content.map((part) => part.transcript).join("");
    transcript.agentSaid(item.id, text, response.rejoinder.heard, response.status);
    if (speaking === item.id) speaking = null;
    const interrupted = response.status === "cancelled" && response.id !== answering;
    if (state() === "paused") setState("hearing");
    else if (state() !== "hearing" && !(state() === "thinking" && interrupted)) setState("listening");
  },
  "rejoinder.playback.pause": () => {
    running?.playback.pause();
    setState("paused");
  },
  "rejoinder.playback.resume": () => {
    running?.playback.resume();
    setState("speaking");
  },
  "rejoinder.playback.clear": () => running?.playback.clear(),
  "rejoinder.stage": (event) => {
    turn.mark(event);
    history.select(null);
    $("waterfall-title").textContent = title(event.turn, event.revision);
  },
  "rejoinder.turn": ({ record }) => {
    turn.clear();
    history.add(record);
    showTurn(record);
  },
  "rejoinder.call.ended": ({ reason }) => {
    stop();
    notice.ending(reason);
  },
  error: ({ error }) => {
    if (running) notice.warning("The server reports a problem", error.message);
  },
  closed: () => {
    if (!running) return;
    stop();
    notice.problem("lost");
  },
};

function onPlayed({ item, heardMs, totalMs, bufferedMs, rms, peak, drained }) {
  agentMeter.show(rms);
  if (item !== null) running?.call.sendPlayback(item, Math.round(heardMs));
  const figures = $("playback");
  figures.dataset.playedMs = Math.round(totalMs);
  figures.dataset.peak = peak.toFixed(4);
  figures.textContent = `played ${(totalMs / 1000).toFixed(1)} s · buffer ${Math.round(drained ? 0 : bufferedMs)} ms`;
}

function showTurn(record) {
  $("waterfall-title").textContent = title(record.turn, record.revision);
  waterfall.show(record.marks, undefined, record.draft_fate);
}

function title(number, revision) {
  return revision > 1 ? `Turn ${number} · answer revised ${revision - 1}×` : `Turn ${number}`;
}

// ---- each display frame

function paint(now) {
  callerMeter.paint();
  agentMeter.paint();
  if (turn.running) waterfall.show(turn.marks, turn.elapsed(now));
  const seconds = running ? Math.floor((now - running.startedAt) / 1000) : null;
  if (seconds !== null && String(seconds) !== $("clock").dataset.seconds) {
    $("clock").dataset.seconds = seconds;
    $("clock").textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  }
  requestAnimationFrame(paint);
}

$("call").onclick = () => (state() === "idle" ? start() : stop());
notice.onToken((token) => {
  keepToken(token);
  start();
});
takeTokenFromAddress();
setState("idle");
requestAnimationFrame(paint);
