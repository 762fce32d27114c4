// Runs on the audio thread: plays the agent's audio in order, and stops within one block when told to.
//
// In:  {type: "audio", item, samples}, {type: "pause"}, {type: "resume"}, {type: "clear"}
// Out: {item, playedMs, bufferedMs, totalMs, rms, peak, drained}, ten times a second while there is
//      something to tell, and at once after pause and clear.

const START_SECONDS = 0.06; // enough to begin with; the server sends ahead of what is played
const PATIENCE_SECONDS = 0.12; // a reply shorter than that must not wait for more
const CAPACITY_SECONDS = 30; // far more than the server's lead
const REPORT_SECONDS = 0.1;
const FADE = 0.996; // per sample: silence in about 10 ms, so that a stop does not click

class Playback extends AudioWorkletProcessor {
  constructor() {
    super();
    this.queue = []; // {item, samples, next}
    this.buffered = 0;
    this.played = 0; // samples of the current item
    this.total = 0;
    this.item = null;
    this.paused = false;
    this.playing = false;
    this.waited = 0;
    this.last = 0;
    this.peak = 0;
    this.energy = 0;
    this.sinceReport = 0;
    this.port.onmessage = ({ data }) => this[data.type](data);
  }

  audio({ item, samples }) {
    if (this.buffered + samples.length > CAPACITY_SECONDS * sampleRate) return;
    this.queue.push({ item, samples, next: 0 });
    this.buffered += samples.length;
  }

  pause() {
    this.paused = true;
    this.report();
  }

  resume() {
    this.paused = false;
  }

  clear() {
    this.queue = [];
    this.buffered = 0;
    this.paused = false;
    this.playing = false;
    this.report();
  }

  process(_inputs, [output]) {
    const out = output[0];
    let from = 0;
    if (this.mayPlay(out.length)) {
      from = this.fill(out);
      if (this.buffered === 0) this.ranDry();
    }
    for (let i = from; i < out.length; i++) out[i] = this.last *= FADE;
    this.sinceReport += out.length;
    if (this.sinceReport >= REPORT_SECONDS * sampleRate && (from > 0 || this.energy > 0)) this.report();
    return true;
  }

  mayPlay(block) {
    if (this.paused || this.buffered === 0) return false;
    if (this.playing) return true;
    this.waited += block;
    const enough = this.buffered >= START_SECONDS * sampleRate;
    this.playing = enough || this.waited >= PATIENCE_SECONDS * sampleRate;
    if (this.playing) this.waited = 0;
    return this.playing;
  }

  fill(out) {
    let at = 0;
    while (at < out.length && this.queue.length > 0) {
      const chunk = this.queue[0];
      if (chunk.item !== this.item) {
        this.item = chunk.item;
        this.played = 0;
      }
      const count = Math.min(out.length - at, chunk.samples.length - chunk.next);
      for (let i = 0; i < count; i++) {
        const sample = chunk.samples[chunk.next + i];
        out[at + i] = sample;
        this.energy += sample * sample;
        this.peak = Math.max(this.peak, Math.abs(sample));
      }
      at += count;
      chunk.next += count;
      this.played += count;
      this.total += count;
      this.buffered -= count;
      if (chunk.next === chunk.samples.length) this.queue.shift();
    }
    this.last = out[at - 1];
    return at;
  }

  ranDry() {
    this.playing = false;
    this.report(true);
  }

  report(drained = false) {
    const ms = (samples) => (1000 * samples) / sampleRate;
    this.port.postMessage({
      item: this.item,
      playedMs: ms(this.played),
      bufferedMs: ms(this.buffered),
      totalMs: ms(this.total),
      rms: Math.sqrt(this.energy / Math.max(1, this.sinceReport)),
      peak: this.peak,
      drained,
    });
    this.energy = 0;
    this.sinceReport = 0;
  }
}

registerProcessor("playback", Playback);
