// The agent's voice: hands audio to the audio thread, and says what has been heard of it.

import { WIRE_RATE } from "./microphone.js";
import { keepRunning } from "./sound.js";

export class Playback {
  // onProgress({item, heardMs, totalMs, bufferedMs, rms, peak}) is called about ten times a second while playing.
  static async open(onProgress) {
    const context = new AudioContext({ sampleRate: WIRE_RATE, latencyHint: "interactive" });
    try {
      await context.audioWorklet.addModule(new URL("playback-worklet.js", import.meta.url));
      await context.resume();
    } catch (error) {
      context.close();
      throw error;
    }
    keepRunning(context);
    return new Playback(context, onProgress);
  }

  constructor(context, onProgress) {
    this.context = context;
    this.node = new AudioWorkletNode(context, "playback", { numberOfInputs: 0, outputChannelCount: [1] });
    this.node.port.onmessage = ({ data }) => this.progress(data, onProgress);
    this.node.connect(context.destination);
  }

  // What the audio thread has handed on is heard only after the device's own delay.
  get latencyMs() {
    return 1000 * ((this.context.outputLatency || 0) + (this.context.baseLatency || 0));
  }

  play(item, samples) {
    this.node.port.postMessage({ type: "audio", item, samples }, [samples.buffer]);
  }

  pause() {
    this.node.port.postMessage({ type: "pause" });
  }

  resume() {
    this.node.port.postMessage({ type: "resume" });
  }

  clear() {
    this.node.port.postMessage({ type: "clear" });
  }

  progress(report, onProgress) {
    const heardMs = Math.max(0, report.playedMs - this.latencyMs);
    onProgress({ ...report, heardMs });
    if (report.drained) {
      const last = { ...report, heardMs: report.playedMs, rms: 0 };
      this.final = setTimeout(() => onProgress(last), this.latencyMs);
    }
  }

  close() {
    clearTimeout(this.final);
    this.node.port.onmessage = null;
    this.context.close();
  }
}
