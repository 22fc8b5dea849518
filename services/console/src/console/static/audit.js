// The page that verifies statements: of this account, or of a file that somebody has. Text is set as text.

import { CannotVerify, NotVerified, publicKeys, verify } from "./statement.js";

const LARGEST = 256 << 20;
const PROGRESS_STEP = 0.25;
const BY_HAND = "Save the file, and run: tip verify FILE --keys keys.json";
const result = document.getElementById("result");
const form = document.getElementById("statement");
const buttons = [document.getElementById("verify-now"), document.getElementById("verify-file")];

function show(state, title, text, facts = []) {
  const shown = document.getElementById("verdict").content.firstElementChild.cloneNode(true);
  shown.classList.add(state);
  shown.dataset.verdict = title.toLowerCase();
  shown.querySelector("h2").classList.add(state);
  shown.querySelector("h2").textContent = title;
  shown.querySelector("p").textContent = text;
  const list = shown.querySelector("dl");
  for (const [name, value] of facts) list.append(fact(name, value));
  if (!facts.length) list.remove();
  result.replaceChildren(shown);
}

function fact(name, value) {
  const pair = document.createElement("div");
  for (const [tag, text] of [["dt", name], ["dd", value]]) pair.append(Object.assign(document.createElement(tag), { textContent: text }));
  return pair;
}

function showVerified(found) {
  const foreign = found.account !== result.dataset.account ? " It is of another account than this page." : "";
  const period = `${found.since ?? "the beginning"} to ${found.to ?? "its end"}`;
  const facts = [["Entries", String(found.entries)], ["Sequences", `${found.first} to ${found.last}`], ["Signed at", found.signedAt], ["Period", period], ["Key", found.keyId], ["Log epoch", found.epoch], ["Account", found.account]];
  show("good", "Verified", `No entry was altered, added, removed or moved since it was signed.${foreign}`, facts);
}

/** Only what was verified and does not hold is bad: whatever else went wrong says nothing about the file. */
function showFailure(error) {
  if (error instanceof NotVerified) show("bad", "Not verified", `Line ${error.line}: ${error.reason}.`);
  else show("going", "Cannot be verified here", error instanceof CannotVerify ? `${error.message} ${BY_HAND}` : error.message);
}

async function fetched(address, what, options) {
  const answer = await fetch(address, options).catch(() => null);
  if (!answer) throw new Error(`The ${what} could not be read: there was no answer.`);
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).detail ?? `The ${what} could not be read (${answer.status}).`);
  return answer;
}

async function keys() {
  const [file] = document.getElementById("keys").files;
  const answer = file ? new Response(file) : await fetched("/.well-known/log-jwks.json", "keys", { cache: "no-cache" });
  try {
    return publicKeys(await answer.json());
  } catch {
    throw new Error("The keys are not a JWK set.");
  }
}

/** The bytes, and what the statement must be about. */
async function downloaded() {
  const period = new FormData(form);
  const answer = await fetched(`${form.action}?${new URLSearchParams(period)}`, "statement", { headers: { Accept: "application/json" } });
  const wanted = { account: result.dataset.account, since: beginning(period.get("from")), to: beginning(period.get("to")) };
  return [await bytesOf(await answer.blob()), wanted];
}

const beginning = (day) => (day ? `${day}T00:00:00.000000Z` : null);

async function chosen() {
  const [file] = document.getElementById("file").files;
  if (!file) throw new Error("Choose a statement first.");
  return [await bytesOf(file), {}];
}

async function bytesOf(blob) {
  if (blob.size > LARGEST) throw new CannotVerify("The statement is too large for a browser.");
  return new Uint8Array(await blob.arrayBuffer());
}

/** A statement that holds, and is not the one that was requested, is no proof of anything that was. */
function checkWanted(found, wanted) {
  for (const [name, title] of [["account", "account"], ["since", "from"], ["to", "to"]]) {
    if (name in wanted && found[name] !== wanted[name]) throw new NotVerified(1, `its ${title} is not the one that was requested`);
  }
}

/** What a screen reader announces: not every batch. */
function progress() {
  let shown = 0;
  return (part) => {
    if (part - shown < PROGRESS_STEP) return;
    shown = part;
    show("going", "Verifying", `${Math.round(100 * part)} % of the lines.`);
  };
}

async function run(read) {
  for (const button of buttons) button.disabled = true;
  show("going", "Verifying", "Reading the statement.");
  try {
    const [bytes, wanted] = await read();
    const found = await verify(bytes, await keys(), progress());
    checkWanted(found, wanted);
    showVerified(found);
  } catch (error) {
    showFailure(error);
  }
  for (const button of buttons) button.disabled = false;
}

for (const [place, read] of [downloaded, chosen].entries()) {
  buttons[place].hidden = false;
  buttons[place].addEventListener("click", () => run(read));
}
