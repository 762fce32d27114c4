// The caller's microphone as frames of 16-bit PCM.

import { keepRunning } from "./sound.js";

export const WIRE_RATE = 24000;

// Both channels of a stereo microphone, where the browser gives them: averaged to one, those in opposite phase would
// be silent. Chromium's echo canceller mixes them before any page hears them.
const WISHES = { channelCount: 2, echoCancellation: true, noiseSuppression: true, autoGainControl: true };
const PROBLEMS = {
  NotAllowedError: "denied",
  SecurityError: "denied",
  NotFoundError: "no_microphone",
  OverconstrainedError: "no_microphone",
};

// `code` names what is wrong with the microphone.
export class MicrophoneError extends Error {
  constructor(error) {
    super(error.message);
    this.code = PROBLEMS[error.name] ?? "microphone_busy";
  }
}

export class Microphone {
  // onFrame(pcm: ArrayBuffer, rms: number) is called every 40 ms once `open` has resolved.
  static async open(onFrame) {
    const stream = await navigator.mediaDevices.getUserMedia({ audio: WISHES }).catch((error) => {
      throw new MicrophoneError(error);
    });
    const microphone = new Microphone(stream);
    try {
      await microphone.listen(onFrame);
    } catch (error) {
      microphone.close();
      throw error;
    }
    return microphone;
  }

  constructor(stream) {
    this.stream = stream;
    this.track = stream.getAudioTracks()[0];
    this.context = null;
  }

  get rate() {
    return this.context.sampleRate;
  }

  async listen(onFrame) {
    const source = this.connect(WIRE_RATE) ?? this.connect();
    await this.context.audioWorklet.addModule(new URL("capture-worklet.js", import.meta.url));
    this.node = new AudioWorkletNode(this.context, "capture", { numberOfOutputs: 0 });
    this.node.port.onmessage = ({ data }) => onFrame(data.pcm, data.rms);
    source.connect(this.node);
    await this.context.resume();
    keepRunning(this.context);
  }

  // Some browsers take a microphone only at the device's own rate.
  connect(sampleRate) {
    const context = new AudioContext({ sampleRate, latencyHint: "interactive" });
    try {
      const source = context.createMediaStreamSource(this.stream);
      this.context = context;
      return source;
    } catch (error) {
      context.close();
      if (sampleRate === undefined) throw error;
      return null;
    }
  }

  onLost(callback) {
    this.track.onended = callback;
  }

  close() {
    this.track.onended = null;
    if (this.node) this.node.port.onmessage = null;
    for (const track of this.stream.getTracks()) track.stop();
    if (this.context && this.context.state !== "closed") this.context.close();
  }
}
