// The page that verifies statements: of this account, or of a file that somebody has. Text is set as text.

import { CannotVerify, NotVerified, publicKeys, verify } from "./statement.js";

const LARGEST = 256 << 20;
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

function showFailure(error) {
  if (error instanceof NotVerified) show("bad", "Not verified", `Line ${error.line}: ${error.reason}.`);
  else if (error instanceof CannotVerify) show("going", "Cannot be verified here", `${error.message} ${BY_HAND}`);
  else show("bad", "Not verified", error.message);
}

async function keys() {
  const [file] = document.getElementById("keys").files;
  const answer = file ? new Response(file) : await fetch("/.well-known/log-jwks.json");
  try {
    return publicKeys(await answer.json());
  } catch {
    throw new Error("The keys are not a JWK set.");
  }
}

async function downloaded() {
  const answer = await fetch(`${form.action}?${new URLSearchParams(new FormData(form))}`, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).detail ?? `The statement could not be read (${answer.status}).`);
  return answer;
}

async function chosen() {
  const [file] = document.getElementById("file").files;
  if (!file) throw new Error("Choose a statement first.");
  return new Response(file);
}

async function bytesOf(answer) {
  const blob = await answer.blob();
  if (blob.size > LARGEST) throw new CannotVerify("The statement is too large for a browser.");
  return new Uint8Array(await blob.arrayBuffer());
}

async function run(read) {
  for (const button of buttons) button.disabled = true;
  show("going", "Verifying", "Reading the statement.");
  try {
    const bytes = await bytesOf(await read());
    showVerified(await verify(bytes, await keys(), (part) => show("going", "Verifying", `${Math.round(100 * part)} % of the lines.`)));
  } catch (error) {
    showFailure(error);
  }
  for (const button of buttons) button.disabled = false;
}

for (const [place, read] of [downloaded, chosen].entries()) {
  buttons[place].hidden = false;
  buttons[place].addEventListener("click", () => run(read));
}
