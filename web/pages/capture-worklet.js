// Runs on the audio thread: cuts the microphone into frames of 40 ms, as 16-bit PCM, with the level of each.
//
// Of several channels one is heard, the loudest: a sum would silence those in opposite phase, and one that is
// not connected would halve the other.

const FRAME_SECONDS = 0.04;
const MEMORY_SECONDS = 2; // what counts as loud now
const FADE_SECONDS = 0.005; // from one channel to another without a click
const LOUDER = 2; // in energy, so that two alike are not changed back and forth

class Channel {
  constructor(length) {
    this.samples = new Float32Array(length);
    this.energy = 0;
  }

  // A constant offset is no sound.
  weigh() {
    let sum = 0;
    let squares = 0;
    for (const sample of this.samples) {
      sum += sample;
      squares += sample * sample;
    }
    const energy = squares - (sum * sum) / this.samples.length;
    this.energy = this.energy * Math.exp(-FRAME_SECONDS / MEMORY_SECONDS) + energy;
  }
}

class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.length = Math.round(sampleRate * FRAME_SECONDS);
    this.channels = [];
    this.chosen = 0;
    this.filled = 0;
  }

  process([input]) {
    if (input.length === 0) return true; // the microphone is not connected yet
    this.match(input.length);
    let at = 0;
    while (at < input[0].length) {
      const next = Math.min(input[0].length, at + this.length - this.filled);
      this.channels.forEach(({ samples }, index) => samples.set(input[index].subarray(at, next), this.filled));
      this.filled += next - at;
      at = next;
      if (this.filled === this.length) this.send();
    }
    return true;
  }

  // A microphone may become another one while it is open.
  match(count) {
    while (this.channels.length < count) this.channels.push(new Channel(this.length));
    this.channels.length = count;
    if (this.chosen >= count) this.chosen = 0;
  }

  send() {
    const before = this.channels[this.chosen].samples;
    const { samples } = this.choose();
    const fade = sampleRate * FADE_SECONDS;
    const frame = new Int16Array(this.length);
    let energy = 0;
    for (let i = 0; i < frame.length; i++) {
      const share = Math.min(1, i / fade);
      const bounded = Math.max(-1, Math.min(1, before[i] + share * (samples[i] - before[i])));
      frame[i] = Math.round(bounded < 0 ? bounded * 32768 : bounded * 32767);
      energy += bounded * bounded;
    }
    this.filled = 0;
    this.port.postMessage({ pcm: frame.buffer, rms: Math.sqrt(energy / frame.length) }, [frame.buffer]);
  }

  // By this frame too, before it is sent: the first word is not lost on a channel that has been silent so far.
  choose() {
    for (const channel of this.channels) channel.weigh();
    const energies = this.channels.map(({ energy }) => energy);
    const loudest = energies.indexOf(Math.max(...energies));
    if (energies[loudest] > LOUDER * energies[this.chosen]) this.chosen = loudest;
    return this.channels[this.chosen];
  }
}

registerProcessor("capture", Capture);
