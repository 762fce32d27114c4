// The realtime socket: opens it, sends the caller's audio, and turns the server's events into callbacks by type.

import { toBase64, fromBase64 } from "./pcm.js";

// Beside the page's own parts, wherever a proxy has put them.
const REALTIME = new URL("v1/realtime", import.meta.url);
const TOKEN_KEY = "rejoinder.token";
const SUBPROTOCOL = "realtime";
const TOKEN_PROTOCOL = "openai-insecure-api-key.";
const MAX_UNSENT_BYTES = 256 * 1024; // about five seconds of audio: the network is gone, later audio is no use

// A token may come once in the page's address; it is kept for this tab and taken out of sight.
export function keepToken(token) {
  sessionStorage.setItem(TOKEN_KEY, token);
}

export function takeTokenFromAddress() {
  const address = new URL(location.href);
  const token = address.searchParams.get("token");
  if (!token) return;
  keepToken(token);
  address.searchParams.delete("token");
  history.replaceState(null, "", address);
}

export class CallError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

export class Call {
  // handlers: {event type: function(event)}, and `closed(code, reason)` for the end of the socket.
  static open(handlers) {
    const address = new URL(REALTIME);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    const agent = new URLSearchParams(location.search).get("agent");
    if (agent) address.searchParams.set("agent", agent);
    const token = sessionStorage.getItem(TOKEN_KEY);
    const protocols = token ? [SUBPROTOCOL, TOKEN_PROTOCOL + asProtocol(token)] : [SUBPROTOCOL];
    const socket = new WebSocket(address, protocols);
    return new Promise((resolve, reject) => {
      const call = new Call(socket, handlers, resolve, reject);
      socket.onmessage = ({ data }) => call.receive(JSON.parse(data));
      socket.onclose = ({ code, reason }) => call.closed(code, reason);
    });
  }

  constructor(socket, handlers, opened, refused) {
    this.socket = socket;
    this.handlers = handlers;
    this.opened = opened;
    this.refused = refused;
    this.session = null;
    this.refusal = null;
  }

  receive(event) {
    if (event.type === "session.created") {
      this.session = event.session;
      this.opened(this);
    } else if (event.type === "error" && !this.session) {
      this.refusal = new CallError(event.error.code, event.error.message);
    }
    if (event.type === "response.output_audio.delta") event.samples = fromBase64(event.delta);
    this.handlers[event.type]?.(event);
  }

  closed(code, reason) {
    if (this.session) this.handlers.closed(code, reason);
    else this.refused(this.refusal ?? new CallError("no_connection", "the socket could not be opened"));
  }

  sendAudio(pcm) {
    if (this.socket.bufferedAmount < MAX_UNSENT_BYTES) {
      this.send({ type: "input_audio_buffer.append", audio: toBase64(pcm) });
    }
  }

  sendInputRate(rate) {
    const format = { type: "audio/pcm", rate };
    this.send({ type: "session.update", session: { type: "realtime", audio: { input: { format } } } });
  }

  sendPlayback(item, playedMs) {
    this.send({ type: "rejoinder.playback", item_id: item, played_ms: playedMs });
  }

  send(event) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(event));
  }

  close() {
    this.socket.onmessage = null;
    this.socket.onclose = null;
    this.socket.close(1000, "hang_up");
  }
}

// Why a socket could not be opened: browsers do not say, so ask the server over HTTP, by POST: a page's own GET
// tells no origin.
export async function diagnose() {
  try {
    const token = sessionStorage.getItem(TOKEN_KEY);
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    const door = await fetch(REALTIME, { method: "POST", headers });
    if (door.status === 401) return "token_needed";
    if (door.status === 403) return "forbidden";
    return "no_connection";
  } catch {
    return "unreachable";
  }
}

function asProtocol(token) {
  return encodeURIComponent(token).replace(/[()]/g, (mark) => `%${mark.charCodeAt(0).toString(16)}`);
}
