// Pages of one object: when something happens to it, the parts that show it are read anew from the server.

import { refreshParts } from "./refresh.js";
import { Stream } from "./stream.js";

const TYPES = ["INTENT_ACTION", "BROKER_ORDER", "BROKER_TRADE", "BROKER_POSITION", "CONTROL", "REFUSAL"].map((name) => `EVENT_TYPE_${name}`);
const GATHER_MS = 250;
const BETWEEN_MS = Number(document.querySelector("[data-between]")?.dataset.between ?? 0);
const LONGEST_MS = 15_000;
const AGAIN_MS = 2_000; // after a reading that failed: no other event may come
const intent = document.querySelector("[data-of]")?.dataset.of;
let timer = 0;
let readAt = 0;

async function refresh() {
  timer = 0;
  readAt = Date.now();
  if (!(await refreshParts())) timer ||= setTimeout(refresh, AGAIN_MS);
}

function receive(event) {
  const about = (event.intent_action ?? event.broker_order ?? event.broker_trade)?.intent_id;
  if (intent && about !== intent) return;
  timer ||= setTimeout(refresh, Math.max(GATHER_MS, readAt + BETWEEN_MS - Date.now()));
}

new Stream(document.getElementById("stream"), TYPES, receive, () => location.reload());
if (!intent) setInterval(() => { if (!document.hidden) refresh(); }, LONGEST_MS);
