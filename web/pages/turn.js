// The turn that is running now: its marks as they come, and how long it has been running.

export class LiveTurn {
  constructor() {
    this.clear();
  }

  clear() {
    this.number = null;
    this.revision = 0;
    this.marks = {};
    this.origin = null;
  }

  get running() {
    return this.number !== null;
  }

  // A later revision takes the marks of a refuted one with it.
  mark({ turn, revision, mark, ms }) {
    if (turn !== this.number || revision !== this.revision) {
      this.clear();
      this.number = turn;
      this.revision = revision;
    }
    this.marks[mark] = ms;
    const origin = performance.now() - ms; // when the caller's last sound was, on this clock
    this.origin = Math.min(this.origin ?? Infinity, origin);
  }

  // Stops at the answer's first sound; undefined once nothing more is being waited for.
  elapsed(now) {
    return "audio_sent" in this.marks ? undefined : Math.max(0, now - this.origin);
  }
}
