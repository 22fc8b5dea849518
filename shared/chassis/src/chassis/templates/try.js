// Sends requests from the page, with a credential that is in its memory alone: never stored, gone when the page is left.

const PATIENCE_MS = 60_000;
const LONGEST_SHOWN = 200_000;
const HEADERS = ["X-Request-Id", "Content-Type", "Location", "ETag", "Idempotent-Replayed", "Retry-After", "RateLimit"];
const STREAM = "text/event-stream";
const credential = document.getElementById("credential");
const typed = new Map(); // what was typed for a parameter is there in the next form, too
let described;

function element(name, properties = {}, ...content) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...content);
  return made;
}

/** Method, path and description of every operation, by its id; read when the first form is opened. */
function operations() {
  described ??= fetch("/openapi.json", { credentials: "omit" }).then(async (answer) => {
    const paths = Object.entries((await answer.json()).paths);
    const rows = paths.flatMap(([path, methods]) => Object.entries(methods).map(([method, about]) => ({ method: method.toUpperCase(), path, about })));
    return new Map(rows.map((row) => [row.about.operationId, row]));
  });
  return described;
}

function parameterField({ name, in: place, required, example, schema }) {
  const sample = example === undefined ? "" : String(example);
  const choices = schema.enum?.filter((choice) => choice !== null);
  const input = choices
    ? element("select", {}, ...["", ...choices].map((choice) => element("option", { textContent: choice })))
    : element("input", { autocomplete: "off", spellcheck: false, placeholder: sample });
  input.required = Boolean(required);
  input.value = typed.get(name) ?? (required ? sample : "");
  input.addEventListener("input", () => typed.set(name, input.value));
  const label = element("label", {}, `${name} (${place}${required ? "" : ", optional"}) `, input);
  return { name, place, input, label };
}

function bodyField(about) {
  const [[type, content] = []] = Object.entries(about.requestBody?.content ?? {});
  if (!type) return {};
  const isForm = type === "application/x-www-form-urlencoded";
  const text = isForm ? new URLSearchParams(content.example).toString() : JSON.stringify(content.example, null, 2);
  const input = element("textarea", { value: text, rows: Math.min(20, text.split("\n").length + 1), spellcheck: false });
  return { type, input, label: element("label", {}, `Body (${type}) `, input) };
}

function requestOf({ method, path, about }, fields, body) {
  const headers = new Headers();
  const query = new URLSearchParams();
  let address = path;
  for (const { name, place, input } of fields.filter((field) => field.input.value !== "")) {
    if (place === "path") address = address.replace(`{${name}}`, encodeURIComponent(input.value));
    else if (place === "query") query.append(name, input.value);
    else headers.set(name, input.value);
  }
  const secret = about.security.length ? credential.elements.secret.value.trim() : "";
  if (secret) headers.set(...(credential.elements.kind.value === "key" ? ["x-api-key", secret] : ["authorization", `Bearer ${secret}`]));
  if (body.input) headers.set("content-type", body.type);
  return { address: query.size ? `${address}?${query}` : address, options: { method, headers, body: body.input?.value } };
}

/** Whatever deletes, and whatever changes something with a credential that is not for paper accounts alone. */
function isAskedTwice({ method, about }) {
  const secret = credential.elements.secret.value.trim();
  return method === "DELETE" || (method !== "GET" && about.security.length > 0 && secret !== "" && !secret.startsWith("tip_paper_"));
}

function pretty(text) {
  let shown = text;
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2);
  } catch { /* no JSON: as it is */ }
  return shown.length > LONGEST_SHOWN ? `${shown.slice(0, LONGEST_SHOWN)}\n… and ${shown.length - LONGEST_SHOWN} characters more` : shown;
}

function explanation(text) {
  let problem;
  try {
    problem = JSON.parse(text);
  } catch {
    return [];
  }
  if (!problem?.code) return [];
  const page = element("a", { href: `/docs/problems/${encodeURIComponent(problem.code)}` }, element("code", { textContent: problem.code }));
  return [element("p", {}, `${problem.detail ?? ""} What it means and what to do: `, page)];
}

async function answerTo({ address, options }) {
  const began = performance.now();
  const settings = { credentials: "omit", cache: "no-store", redirect: "manual", referrerPolicy: "no-referrer", signal: AbortSignal.timeout(PATIENCE_MS) };
  const answer = await fetch(address, { ...options, ...settings });
  if (answer.type === "opaqueredirect") return [element("p", { textContent: "A redirect to another page, which is not followed here." })];
  const text = await answer.text();
  const took = Math.round(performance.now() - began);
  const facts = HEADERS.filter((name) => answer.headers.has(name)).map((name) => `${name}: ${answer.headers.get(name)}`);
  return [
    element("p", {}, element("strong", { textContent: `${answer.status} ${answer.statusText}` }), ` in ${took} ms, ${options.method} ${address}`),
    ...(answer.ok ? [] : explanation(text)),
    element("pre", { textContent: facts.join("\n"), tabIndex: 0 }),
    ...(text ? [element("pre", { textContent: pretty(text), tabIndex: 0 })] : []),
  ];
}

function formOf(operation) {
  const fields = operation.about.parameters.map(parameterField);
  const body = bodyField(operation.about);
  const [send, answer] = [element("button", { textContent: "Send" }), element("div", { className: "answer" })];
  answer.setAttribute("role", "status");
  const form = element("form", { className: "try" }, ...fields.map((field) => field.label), ...(body.label ? [body.label] : []), send, answer);
  const calm = () => { send.textContent = "Send"; };
  for (const changing of [form, credential]) changing.addEventListener("input", calm);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const sure = `Yes, send ${operation.method} ${operation.path}`;
    if (isAskedTwice(operation) && send.textContent !== sure) {
      send.textContent = sure;
      return;
    }
    send.disabled = true;
    answer.replaceChildren("Sent, waiting for the answer.");
    try {
      answer.replaceChildren(...await answerTo(requestOf(operation, fields, body)));
    } catch (error) {
      answer.replaceChildren(`No answer: ${error.message}`);
    }
    send.disabled = false;
    calm();
  });
  return form;
}

function offer(place) {
  const button = element("button", { type: "button", textContent: "Try it" });
  button.addEventListener("click", async () => {
    try {
      const operation = (await operations()).get(place.id);
      const streams = Object.values(operation.about.responses).some((answer) => STREAM in (answer.content ?? {}));
      const note = element("p", { textContent: "It never ends: open it with curl, as the sample below." });
      const form = streams ? note : formOf(operation);
      button.replaceWith(form);
      form.querySelector("input, select, textarea, button")?.focus();
    } catch {
      described = undefined;
      button.textContent = "The document could not be read. Try it again";
    }
  });
  place.querySelector(":scope > div > p").after(button);
}

function forget() {
  credential.reset();
  typed.clear();
}

for (const place of document.querySelectorAll("details.operation")) offer(place);
credential.hidden = false;
credential.addEventListener("submit", (event) => event.preventDefault());
document.getElementById("forget").addEventListener("click", forget);
addEventListener("pagehide", forget);
