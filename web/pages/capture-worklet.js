// Runs on the audio thread: cuts the microphone into frames of 40 ms, as 16-bit PCM, with the level of each.

const FRAME_SECONDS = 0.04;

class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.frame = new Int16Array(Math.round(sampleRate * FRAME_SECONDS));
    this.filled = 0;
    this.energy = 0;
  }

  process([input]) {
    const channel = input[0];
    if (!channel) return true; // the microphone is not connected yet
    for (const sample of channel) {
      const bounded = Math.max(-1, Math.min(1, sample));
      this.frame[this.filled++] = Math.round(bounded < 0 ? bounded * 32768 : bounded * 32767);
      this.energy += bounded * bounded;
      if (this.filled === this.frame.length) this.send();
    }
    return true;
  }

  send() {
    const rms = Math.sqrt(this.energy / this.frame.length);
    const pcm = this.frame.buffer;
    this.frame = new Int16Array(this.frame.length);
    this.filled = 0;
    this.energy = 0;
    this.port.postMessage({ pcm, rms }, [pcm]);
  }
}

registerProcessor("capture", Capture);
