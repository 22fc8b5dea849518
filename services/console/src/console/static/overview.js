// Figures that say how old they are: read again every ten seconds while somebody looks, greyed when that does not work.

import { refreshParts } from "./refresh.js";

const EVERY_MS = 10_000;
const STALE_MS = 60_000;
const readAt = document.getElementById("read-at");
let seen = Date.now();

async function refresh() {
  if (document.hidden || !(await refreshParts())) return;
  seen = Date.now();
  document.dispatchEvent(new Event("parts-read"));
}

function showAge() {
  const age = Date.now() - seen;
  readAt.textContent = age > STALE_MS ? `not read for ${Math.floor(age / 60_000)} min` : `read ${Math.floor(age / 1000)} s ago`;
  document.getElementById("main").classList.toggle("is-stale", age > STALE_MS);
}

setInterval(refresh, EVERY_MS);
setInterval(showAge, 1000);
document.addEventListener("visibilitychange", () => { if (Date.now() - seen > EVERY_MS) refresh(); });
