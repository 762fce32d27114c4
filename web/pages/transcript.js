// What both sides said. The caller's words appear as they become final; of an interrupted answer the unheard part is set apart.

export class Transcript {
  constructor(list, empty) {
    this.list = list;
    this.empty = empty;
    this.entries = new Map();
  }

  clear() {
    this.list.replaceChildren();
    this.entries.clear();
    this.empty.hidden = false;
  }

  callerSays(item, text) {
    this.entry(item, "caller", "You").append(text);
    this.scroll();
  }

  callerSaid(item, text) {
    const body = this.entry(item, "caller", "You");
    body.textContent = text.trim();
    if (!body.textContent) this.remove(item);
    this.settle(item);
  }

  agentSays(item, text) {
    this.entry(item, "agent", "Agent").append(text);
    this.scroll();
  }

  // `heard` is what had been played when the answer ended.
  agentSaid(item, text, heard, status) {
    if (!this.entries.has(item) && !text) return;
    const body = this.entry(item, "agent", "Agent");
    body.textContent = text.trim();
    if (status === "cancelled") this.setApart(item, body, text, heard ?? "");
    if (!body.textContent.trim()) this.remove(item);
    this.settle(item);
  }

  setApart(item, body, text, heard) {
    const unheard = document.createElement("s");
    unheard.className = "unheard";
    unheard.textContent = afterHeard(text, heard).trimEnd();
    body.textContent = heard;
    if (unheard.textContent.trim()) body.append(unheard);
    const note = document.createElement("span");
    note.className = "note";
    note.textContent = heard.trim() ? "interrupted" : "interrupted, nothing heard";
    body.parentElement.append(note);
  }

  entry(item, side, name) {
    const found = this.entries.get(item);
    if (found) return found;
    const row = document.createElement("li");
    row.className = `utterance ${side} live`;
    row.dataset.side = side;
    const who = document.createElement("span");
    who.className = "who";
    who.textContent = name;
    const body = document.createElement("p");
    row.append(who, body);
    this.list.append(row);
    this.empty.hidden = true;
    this.entries.set(item, body);
    this.scroll();
    return body;
  }

  settle(item) {
    this.entries.get(item)?.parentElement.classList.remove("live");
    this.scroll();
  }

  remove(item) {
    this.entries.get(item)?.parentElement.remove();
    this.entries.delete(item);
    this.empty.hidden = this.entries.size > 0;
  }

  scroll() {
    this.list.scrollTop = this.list.scrollHeight;
  }
}

// What of the text was not heard: the two may differ in their blanks.
function afterHeard(text, heard) {
  let at = 0;
  for (const character of heard.replace(/\s/g, "")) {
    while (/\s/.test(text.slice(at, at + 1))) at++;
    if (!text.startsWith(character, at)) return text.slice(heard.length);
    at += character.length;
  }
  return text.slice(at);
}
