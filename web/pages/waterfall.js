// One turn's stages as bars on a common axis: live while the turn runs, or as it was logged.

import { STAGES, milliseconds } from "./stages.js";

const STEPS = [50, 100, 200, 250, 500, 1000, 2000, 5000, 10000];
const TICKS = 6;
const SHORTEST_AXIS = 800;

const EXPLANATION = "Where every millisecond goes, from your last sound to the agent's first.";

// What became of what had been drafted; nothing to say of a turn that runs.
const FATES = {
  whole: "The draft was the answer.",
  part: "The answer kept the beginning of a draft.",
  wasted: "Its draft was thrown away.",
  none: "The answer was written after that.",
};

// How much of the making of the answer was over when the turn was decided to be over.
function ahead({ commit, soft_end: began, tts_first_audio: ready }) {
  const done = Math.min(commit, ready) - began;
  return done > 0 ? `${milliseconds(done)} of the work was done before the turn was over.` : EXPLANATION;
}

function inWords(marks, now, fate) {
  if (Number.isFinite(marks.audio_sent)) return [ahead(marks), FATES[fate]].filter(Boolean).join(" ");
  return now === undefined || "commit" in marks ? EXPLANATION : "Drafting behind the gate …";
}

export class Waterfall {
  constructor(element, headline, caption) {
    this.element = element;
    this.headline = headline;
    this.caption = caption;
    this.rows = STAGES.map((stage) => this.addRow(stage));
    this.axis = this.add(element, "axis");
    this.lines = { commit: this.add(element, "line commit"), audio_sent: this.add(element, "line heard") };
    this.show({});
  }

  // `marks`: name to milliseconds. `now`: the running turn's time, undefined for a turn that is over, which has
  // a draft's `fate`.
  show(marks, now, fate) {
    const known = { ...marks };
    if (Object.keys(known).length > 0) known.speech_end ??= 0;
    const ends = STAGES.map(({ to }) => known[to]).filter(Number.isFinite);
    const last = Math.max(SHORTEST_AXIS, ...ends, now ?? 0);
    const first = Math.min(0, ...STAGES.map(({ from }) => known[from]).filter(Number.isFinite));
    this.scale = (ms) => (100 * (ms - first)) / (1.06 * last - first);
    this.paintAxis(first, 1.06 * last);
    this.rows.forEach((row, index) => this.paintRow(row, STAGES[index], known, now));
    for (const [mark, line] of Object.entries(this.lines)) {
      line.hidden = !Number.isFinite(known[mark]);
      if (!line.hidden) line.style.setProperty("--at", this.scale(known[mark]));
    }
    this.describe(known, now, fate);
  }

  paintRow(row, { from, to }, marks, now) {
    const start = marks[from];
    const over = Number.isFinite(marks[to]);
    const end = over ? marks[to] : now;
    const visible = Number.isFinite(start) && Number.isFinite(end) && end >= start;
    row.element.classList.toggle("running", visible && !over);
    row.value.textContent = visible ? milliseconds(end - start) : "";
    const gate = marks.commit ?? Infinity;
    this.place(row.drafted, visible, start, Math.min(end, gate));
    this.place(row.open, visible, Math.max(start, gate), end);
  }

  place(bar, visible, start, end) {
    bar.hidden = !visible || !(end > start);
    if (bar.hidden) return;
    bar.style.left = `${this.scale(start)}%`;
    bar.style.width = `${Math.max(0.4, this.scale(end) - this.scale(start))}%`;
  }

  paintAxis(first, last) {
    const step = STEPS.find((size) => (last - first) / size <= TICKS) ?? STEPS.at(-1);
    const ticks = [];
    for (let at = Math.ceil(first / step) * step; at < last; at += step) {
      const tick = document.createElement("span");
      tick.textContent = at === 0 ? "0" : at >= 1000 ? `${at / 1000} s` : `${at} ms`;
      tick.style.left = `${this.scale(at)}%`;
      ticks.push(tick);
    }
    this.axis.firstChild.replaceChildren(...ticks);
  }

  describe(marks, now, fate) {
    const answered = Number.isFinite(marks.audio_sent);
    this.headline.classList.toggle("live", now !== undefined && !answered);
    if (answered) this.headline.textContent = milliseconds(marks.audio_sent);
    else this.headline.textContent = now === undefined ? "" : milliseconds(now);
    this.say(inWords(marks, now, fate));
    const stages = STAGES.filter(({ from, to }) => Number.isFinite(marks[from]) && Number.isFinite(marks[to]));
    const parts = stages.map(({ label, from, to }) => `${label}: ${milliseconds(marks[to] - marks[from])}`);
    const total = answered ? `Answered after ${milliseconds(marks.audio_sent)}. ` : "";
    this.element.setAttribute("aria-label", parts.length ? total + parts.join(", ") : "No turn yet");
  }

  say(text) {
    if (this.caption.textContent !== text) this.caption.textContent = text;
  }

  addRow(stage) {
    const element = this.add(this.element, `row ${stage.name}`);
    const label = this.add(element, "label");
    label.textContent = stage.label;
    const lane = this.add(element, "lane");
    const drafted = this.add(lane, "bar drafted");
    const open = this.add(lane, "bar open");
    return { element, drafted, open, value: this.add(element, "value") };
  }

  add(parent, className) {
    const element = document.createElement("div");
    element.className = className;
    if (className === "axis" || className.startsWith("line")) element.append(document.createElement("div"));
    return parent.appendChild(element);
  }
}
