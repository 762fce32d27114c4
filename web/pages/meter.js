// A level meter of a few bars. Levels are RMS in [0, 1]; what is shown is loudness in decibels, falling gently.

const BARS = 9;
const FLOOR_DB = -50;
const FULL_DB = -14;
const FALL = 0.82;

export class Meter {
  constructor(element) {
    this.element = element;
    const bars = element.querySelector(".bars");
    this.bars = Array.from({ length: BARS }, () => bars.appendChild(document.createElement("i")));
    this.shown = 0;
    this.level = 0;
    this.paint();
  }

  show(rms) {
    const db = 20 * Math.log10(Math.max(rms, 1e-6));
    this.level = Math.min(1, Math.max(0, (db - FLOOR_DB) / (FULL_DB - FLOOR_DB)));
    this.shown = Math.max(this.shown, this.level);
  }

  reset() {
    this.level = this.shown = 0;
  }

  // Once a display frame.
  paint() {
    this.shown = Math.max(this.level, this.shown * FALL);
    this.level *= 0.9;
    const middle = (BARS - 1) / 2;
    this.bars.forEach((bar, index) => {
      const shape = 1 - 0.55 * Math.abs(index - middle) / middle;
      bar.style.transform = `scaleY(${Math.max(0.08, this.shown * shape)})`;
    });
    this.element.setAttribute("aria-valuenow", String(Math.round(100 * this.shown)));
  }
}
