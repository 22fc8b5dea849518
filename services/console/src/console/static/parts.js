// Pages of one object: when something happens to it, the parts that show it are read anew from the server.

import { Stream } from "./stream.js";

const TYPES = ["INTENT_ACTION", "BROKER_ORDER", "BROKER_TRADE", "BROKER_POSITION", "CONTROL", "REFUSAL"].map((name) => `EVENT_TYPE_${name}`);
const GATHER_MS = 250;
const LONGEST_MS = 15_000;
const parts = () => document.querySelectorAll("[data-part]");
const intent = document.querySelector("[data-of]")?.dataset.of;
let timer = 0;

async function refresh() {
  timer = 0;
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!answer?.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of parts()) {
    const fresh = page.querySelector(`[data-part="${part.dataset.part}"]`);
    if (fresh && fresh.innerHTML !== part.innerHTML && !part.contains(document.activeElement)) part.replaceWith(document.adoptNode(fresh));
  }
}

function receive(event) {
  const about = (event.intent_action ?? event.broker_order ?? event.broker_trade)?.intent_id;
  if (intent && about !== intent) return;
  timer ||= setTimeout(refresh, GATHER_MS);
}

new Stream(document.getElementById("stream"), TYPES, receive, () => location.reload());
if (!intent) setInterval(() => { if (!document.hidden) refresh(); }, LONGEST_MS);
