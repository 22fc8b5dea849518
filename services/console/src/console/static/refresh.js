// The parts of a page that change are read anew from the server; whatever has the focus stays as it is.

import { sayAway, sayBack } from "./away.js";

const EFFECT = "what is shown here may be old.";
let reading = null;
let isDue = false;

/** Whether it could be read. One reading at a time: what comes meanwhile is one more after it, so none overtakes another. */
export async function refreshParts() {
  if (reading) {
    isDue = true;
    return reading;
  }
  reading = read().catch(() => lost("The console does not answer"));
  const isRead = await reading;
  reading = null;
  if (!isDue) return isRead;
  isDue = false;
  return refreshParts();
}

async function read() {
  const answer = await fetch(document.body.dataset.here + location.search, { headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (!answer.ok) return lost(page.querySelector(".message p")?.textContent ?? `The console answers ${answer.status}`);
  for (const part of document.querySelectorAll("[data-part]")) {
    const fresh = page.querySelector(`[data-part="${part.dataset.part}"]`);
    if (fresh && fresh.innerHTML !== part.innerHTML && !part.contains(document.activeElement)) part.replaceWith(document.adoptNode(fresh));
  }
  sayBack("page");
  return true;
}

function lost(detail) {
  sayAway("page", detail, EFFECT);
  return false;
}
