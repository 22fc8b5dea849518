// The account's events as they come, resumed by sequence. A ticket opens one connection; for the next one another is
// requested, so that no credential is ever in this browser.

import { sayAway, sayBack } from "./away.js";

const SILENCE_MS = 40_000; // heartbeats come every 15 seconds
const SLOWEST_MS = 10_000;
const LOST = "The event stream does not answer";
const EFFECT = "what happens now is shown when it is back, without loading the page.";

export class Stream {
  /** `onEvent` gets each event's data once and in order; `onGap` is called when the log was begun anew. */
  constructor(element, types, onEvent, onGap) {
    Object.assign(this, { element, types, onEvent, onGap, delay: 500, lastSeen: 0, epoch: "" });
    this.after = element.dataset.after;
    this.label = document.getElementById("stream-state");
    setInterval(() => this.watch(), 1000);
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.watch(); });
    window.addEventListener("pagehide", () => this.source?.close());
    this.connect();
  }

  async connect() {
    const { account, csrf } = this.element.dataset;
    this.show("connecting", "connecting");
    let answer;
    try {
      const headers = { "X-CSRF-Token": csrf, Accept: "application/json" };
      answer = await fetch(`/console/accounts/${account}/stream`, { method: "POST", headers });
    } catch {
      return this.retry("The console does not answer");
    }
    if (answer.status === 401 || answer.status === 403) return this.show("lost", "signed out: load the page again");
    if (!answer.ok) return this.retry((await answer.json().catch(() => ({}))).detail);
    this.open(account, (await answer.json()).ticket);
  }

  open(account, ticket) {
    const query = new URLSearchParams({ ticket, subscriptions: this.types.join(","), resume_after_sequence: this.after });
    if (this.epoch) query.set("resume_epoch", this.epoch);
    const source = new EventSource(`/v1/accounts/${account}/events?${query}`);
    this.source = source;
    for (const type of this.types) source.addEventListener(type, (message) => this.receive(message));
    for (const type of ["heartbeat", "replay_complete"]) source.addEventListener(type, () => this.seen());
    source.addEventListener("end", (message) => this.ended(JSON.parse(message.data)));
    source.onopen = () => this.seen();
    source.onerror = () => this.retry();
  }

  receive(message) {
    this.seen();
    this.lastEvent = Date.now();
    [this.after, this.epoch] = message.lastEventId.split("@");
    this.onEvent(JSON.parse(message.data));
  }

  seen() {
    this.lastSeen = Date.now();
    this.delay = 500;
    sayBack("stream");
    this.watch();
  }

  ended({ code, detail }) {
    if (code === "epoch_ended" || code === "out_of_range") this.onGap();
    else this.retry(detail);
  }

  retry(detail = LOST) {
    this.source?.close();
    this.source = null;
    this.show("lost", "connection lost, trying again");
    sayAway("stream", detail, EFFECT);
    setTimeout(() => this.connect(), this.delay * (0.5 + Math.random()));
    this.delay = Math.min(this.delay * 2, SLOWEST_MS);
  }

  watch() {
    if (!this.source) return;
    if (this.lastSeen && Date.now() - this.lastSeen > SILENCE_MS) return this.retry();
    if (this.lastSeen) this.show("live", this.lastEvent ? `live, ${age(Date.now() - this.lastEvent)}` : "live");
  }

  show(state, text) {
    this.element.dataset.state = state;
    if (this.label.textContent !== text) this.label.textContent = text;
  }
}

function age(ms) {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  return seconds < 3600 ? `${Math.floor(seconds / 60)} min` : `${Math.floor(seconds / 3600)} h`;
}
