// What went wrong, in words that say what to do.

const NOTICES = {
  insecure: ["No microphone on this address", "Browsers give a microphone only to https pages and to localhost. Open the page that way."],
  denied: ["The microphone is blocked", "Allow it for this page in the address bar, then start again."],
  no_microphone: ["No microphone found", "Plug one in or choose one in the system's settings, then start again."],
  microphone_busy: ["The microphone cannot be opened", "Another program may be using it. Close that and start again."],
  microphone_lost: ["The microphone went away", "It was unplugged or switched off. The call has ended."],
  no_sound: ["This page's sound could not be started", "Close other pages and programs that use sound, reload this page, then start again."],
  token_needed: ["This server asks for a token", "Enter the one it was started with."],
  forbidden: ["This page may not call this server", "Its address is not among the server's allowed_origins."],
  unreachable: ["The server does not answer", "It may have been stopped. Check that it is running, then start again."],
  no_connection: ["The call could not be opened", "The server answers, but something between it and this page refuses websockets."],
  not_ready: ["The models are still loading", "This takes some seconds after a start. Try again in a moment."],
  too_many_calls: ["All lines are busy", "The server is at its limit of concurrent calls. Try again in a moment."],
  shutting_down: ["The server is shutting down", "Start again when it is back."],
  lost: ["Connection lost", "The call has ended. Start again to call back."],
};

const ENDINGS = {
  goodbye: ["The agent hung up", "You both said goodbye."],
  silence: ["The agent hung up", "It had not heard anything for a while."],
  max_length: ["The call reached its longest allowed time", "Start again to go on."],
  shutdown: ["The server was stopped", "Start again when it is back."],
  error: ["The call ended after an error", "The server's log says what happened. Start again to call back."],
};

export class Notice {
  constructor(element) {
    this.element = element;
    this.title = element.querySelector("strong");
    this.text = element.querySelector("p");
    this.form = element.querySelector("form");
    element.querySelector("#notice-close").onclick = () => this.hide();
  }

  onToken(callback) {
    this.form.onsubmit = (event) => {
      event.preventDefault();
      const field = this.form.querySelector("input");
      callback(field.value);
      field.value = "";
    };
  }

  problem(code, message) {
    const [title, text] = NOTICES[code] ?? ["Something went wrong", message ?? code];
    this.show("problem", title, text);
    this.form.hidden = code !== "token_needed";
    if (!this.form.hidden) this.form.querySelector("input").focus();
  }

  warning(title, text) {
    this.show("warning", title, text);
  }

  ending(reason) {
    if (reason in ENDINGS) this.show(reason === "error" ? "problem" : "ending", ...ENDINGS[reason]);
  }

  show(kind, title, text) {
    this.element.dataset.kind = kind;
    this.title.textContent = title;
    this.text.textContent = text;
    this.form.hidden = true;
    this.element.hidden = false;
  }

  hide() {
    this.element.hidden = true;
  }
}
