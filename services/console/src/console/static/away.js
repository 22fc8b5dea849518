// What this page cannot read at the moment: at the foot of the window, where it moves nothing. Most interruptions are
// over before anybody has to know of them.

const PATIENCE_MS = 3_000;
const place = document.getElementById("away");
const reasons = new Map();

/** `who` says why something cannot be read, until the same one says that it can. */
export function sayAway(who, detail, effect) {
  if (!reasons.has(who)) setTimeout(show, PATIENCE_MS);
  const since = reasons.get(who)?.since ?? Date.now();
  reasons.set(who, { since, text: `${firstSentence(detail)}: ${effect}` });
  show();
}

export function sayBack(who) {
  if (reasons.delete(who)) show();
}

/** What the API says goes on with what its caller is to do. */
function firstSentence(text) {
  return text.split(/[.;:]( |$)/)[0];
}

function show() {
  const due = [...reasons.values()].filter(({ since }) => Date.now() - since >= PATIENCE_MS);
  const text = due.map((reason) => reason.text).join(" ");
  if (place.textContent !== text) place.textContent = text;
}
