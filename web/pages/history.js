// The turns of the call, newest first; choosing one shows its waterfall again.

import { milliseconds, percentile } from "./stages.js";

export class History {
  constructor(list, empty, summary, choose) {
    this.list = list;
    this.empty = empty;
    this.summary = summary;
    this.choose = choose;
    this.clear();
  }

  clear() {
    this.records = [];
    this.list.replaceChildren();
    this.empty.hidden = false;
    this.summary.textContent = "";
  }

  add(record) {
    this.records.push(record);
    this.list.prepend(this.row(record));
    this.empty.hidden = true;
    this.select(record);
    this.summarise();
    this.rescale();
  }

  select(chosen) {
    for (const button of this.list.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(chosen !== null && button.dataset.turn === String(chosen.turn)));
    }
  }

  row(record) {
    const item = document.createElement("li");
    const button = item.appendChild(document.createElement("button"));
    button.type = "button";
    button.dataset.turn = record.turn;
    button.onclick = () => {
      this.select(record);
      this.choose(record);
    };
    const voice = record.durations.voice_to_voice;
    button.append(
      cell("turn", String(record.turn)),
      cell("said", record.caller_text || "(nothing)"),
      this.strip(record),
      cell("number", voice === undefined ? "—" : milliseconds(voice)),
    );
    if (record.interrupted) button.append(cell("tag", "interrupted"));
    return item;
  }

  // The turn's whole wait in one thin bar: what was hidden behind the gate, and what came after it.
  strip(record) {
    const strip = cell("strip", "");
    const { commit, audio_sent: sent } = record.marks;
    if (!Number.isFinite(commit) || !Number.isFinite(sent)) return strip;
    strip.title = `${milliseconds(commit)} until the turn was over, ${milliseconds(sent - commit)} after that`;
    for (const [name, ms] of [["drafted", commit], ["open", sent - commit]]) {
      const part = strip.appendChild(cell(name, ""));
      part.dataset.ms = Math.max(0, ms);
    }
    return strip;
  }

  // All strips on one scale, so that they can be compared.
  rescale() {
    const longest = Math.max(1, ...this.records.map(({ durations }) => durations.voice_to_voice ?? 0));
    for (const part of this.list.querySelectorAll(".strip > span")) {
      part.style.width = `${(100 * part.dataset.ms) / longest}%`;
    }
  }

  summarise() {
    const waits = this.records.map(({ durations }) => durations.voice_to_voice).filter(Number.isFinite);
    if (waits.length === 0) return;
    const p50 = `p50 ${milliseconds(percentile(waits, 0.5))}`;
    this.summary.textContent = waits.length < 3 ? p50 : `${p50} · p95 ${milliseconds(percentile(waits, 0.95))}`;
  }
}

function cell(name, text) {
  const element = document.createElement("span");
  element.className = name;
  element.textContent = text;
  return element;
}
