// The live table of orders: rows change in place, new ones come on top, those of a frame together. They wait while the
// pointer or the keyboard is on a row, or the top is out of sight. Text is set as text, never as markup.
//
// The rows that are there are not laid out for a new one: that stands above them, where it is out of sight, and all are
// moved down together, which is left to the compositor. After a hundred each is put where it is seen.

import { Stream } from "./stream.js";

const TYPES = ["EVENT_TYPE_INTENT_ACTION", "EVENT_TYPE_BROKER_ORDER"];
const MOST_ROWS = 100;
const MEANINGS = { FILLED: "good", REJECTED: "bad", DENIED: "bad", FAILED: "bad", CANCELED: "ended", EXPIRED: "ended" };
const ENDED = new Set(Object.keys(MEANINGS));
const ROW_PX = 33; // as in the style sheet
const WIDE_FIGURE = 9; // characters, as in the template: longer ones are cut off
const HIDDEN_MS = 1_000; // between two looks at what is new, in a tab that nobody looks at
const PENDING = { REPLACE: "PENDING_REPLACE", CANCEL: "PENDING_CANCEL" };

const table = document.getElementById("orders");
const body = table.querySelector("tbody");
const count = document.getElementById("count");
const pause = document.getElementById("pause");
const waiting = [];
const fresh = [];
const rows = new Map([...body.children].map((row) => [row.dataset.intent, row]));
let isPaused = false;
let isPointedAt = false;
let isTopInSight;
let latest = [];
let due = null;
let rowsAbove = 0;

function number(text) {
  if (text === undefined || text === null || text === "") return "\u2013";
  const [whole, ...rest] = text.replace("-", "\u2212").split(".");
  return [whole.replace(/\B(?=(\d{3})+$)/g, "\u2009"), ...rest].join(".");
}

/** With at least two decimals, so that they stand below each other. */
function price(text) {
  return text ? number(text.includes(".") ? text.replace(/\.(\d)$/, ".$10") : `${text}.00`) : number(text);
}

/** What may be cut off is shown whole where the pointer rests. */
function showText(element, text) {
  element.textContent = element.title = text;
}

function showFigure(element, text) {
  showText(element, text);
  element.classList.toggle("long", text.length > WIDE_FIGURE);
}

const cell = (row, name) => row.querySelector(`[data-cell="${name}"]`);

function showStatus(row, status, outcome) {
  const shown = document.createElement("span");
  const words = status.replaceAll("_", " ").toLowerCase();
  const isUnknown = outcome === "unknown";
  shown.className = `state ${isUnknown ? "bad" : MEANINGS[status] ?? "going"}`;
  shown.textContent = isUnknown ? "outcome unknown" : words;
  shown.title = isUnknown ? `${words}, outcome unknown` : words;
  cell(row, "status").replaceChildren(shown);
}

function isWanted(action) {
  const { first, status, symbol, tag } = table.dataset;
  const isOpen = status === "" || status === "open" || status === "PENDING";
  return first === "true" && tag === "" && isOpen && (symbol === "" || symbol === action.symbol);
}

function add(action, event) {
  const row = document.getElementById("order-row").content.firstElementChild.cloneNode(true);
  const { order_kind: kind, quantity, stop_price: stop, limit_price: limit } = action.spec;
  const cells = row.children;
  const time = row.querySelector("time");
  row.dataset.intent = action.intent_id;
  time.dateTime = time.title = event.occurred_at;
  time.textContent = event.occurred_at.slice(11, 19);
  cells[2].textContent = action.order_side;
  cells[2].className = action.order_side === "BUY" ? "good" : "bad";
  showText(cell(row, "kind"), [kind, stop, limit].filter(Boolean).join(" "));
  showFigure(cell(row, "quantity"), number(quantity));
  showFigure(cell(row, "filled"), "0");
  showFigure(cell(row, "average"), "\u2013");
  const link = row.querySelector("a");
  link.href = `${location.pathname}/${action.intent_id}`;
  showText(link, action.symbol);
  const id = row.querySelector("code");
  id.dataset.copy = action.intent_id;
  id.textContent = `${action.intent_id.slice(0, 8)}…`;
  showStatus(row, "PENDING");
  rows.set(action.intent_id, row);
  fresh.push(row);
  settleSoon();
}

function settleSoon() {
  if (due) return;
  const [wait, cancel] = document.hidden ? [setTimeout, clearTimeout] : [requestAnimationFrame, cancelAnimationFrame];
  const timer = wait(settle, HIDDEN_MS);
  due = () => cancel(timer);
}

/** A tab that is hidden has no frames, and a visible one does not wait for a timer. */
document.addEventListener("visibilitychange", () => {
  if (!due) return;
  due();
  due = null;
  settleSoon();
});

function settle() {
  due = null;
  for (const row of fresh.splice(0, fresh.length - MOST_ROWS)) forget(row);
  const mustWait = isPointedAt || body.matches(":focus-within") || !isTopInSight;
  say(count, mustWait && fresh.length ? `newest first, ${fresh.length} new above` : "newest first");
  if (mustWait || !fresh.length) return;
  if (rowsAbove < MOST_ROWS) return insert(fresh.splice(0));
  putIntoPlace();
  settleSoon();
}

function insert(added) {
  table.hidden = false;
  document.getElementById("no-orders").hidden = true;
  for (const row of latest) row.classList.remove("new");
  for (const row of added) {
    row.classList.add("new");
    row.style.top = `${-ROW_PX * ++rowsAbove}px`;
    body.prepend(row);
  }
  latest = added;
  while (body.children.length > MOST_ROWS) forget(body.lastElementChild);
  moveDown();
}

/** The table stays as high as its rows are, wherever they are moved. */
function moveDown() {
  body.style.transform = `translateY(${ROW_PX * rowsAbove}px)`;
  const height = `${ROW_PX * body.children.length}px`;
  if (body.style.height !== height) body.style.height = height;
}

/** Rows are put where they are seen already, so that nothing is moved ever farther. One that came in the same frame would
    shift them. */
function putIntoPlace() {
  rowsAbove = 0;
  for (const row of body.children) row.removeAttribute("style");
  moveDown();
}

function look() {
  isTopInSight = table.getBoundingClientRect().top >= 0;
}

/** Only what changes is written: the page would be laid out anew for the same words, too. */
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function forget(row) {
  rows.delete(row.dataset.intent);
  row.remove();
}

body.addEventListener("pointerenter", (event) => { isPointedAt = event.pointerType === "mouse"; });
body.addEventListener("pointerleave", () => {
  isPointedAt = false;
  settleSoon();
});
body.addEventListener("focusout", settleSoon);
document.addEventListener("scroll", () => {
  look();
  if (fresh.length) settleSoon();
}, { passive: true });
window.addEventListener("resize", look);

function onAction(action, event) {
  const row = rows.get(action.intent_id);
  if (!row && action.command.type === "CREATE" && isWanted(action)) add(action, event);
  if (row && PENDING[action.command.type]) showStatus(row, PENDING[action.command.type]);
}

function onOrder(order) {
  const row = rows.get(order.intent_id);
  if (!row) return;
  showFigure(cell(row, "quantity"), number(order.quantity));
  showFigure(cell(row, "filled"), number(order.filled_quantity));
  showFigure(cell(row, "average"), price(order.average_fill_price));
  showText(cell(row, "reason"), order.reason_code ?? "");
  showStatus(row, order.status, order.outcome);
  if (table.dataset.status === "open" && ENDED.has(order.status)) row.classList.add("over");
}

function show(event) {
  if (event.intent_action) onAction(event.intent_action, event);
  if (event.broker_order) onOrder(event.broker_order);
}

function receive(event) {
  if (isPaused) waiting.push(event);
  else show(event);
  say(pause, isPaused ? `Go on (${waiting.length} waiting)` : "Pause");
}

pause.hidden = false;
pause.addEventListener("click", () => {
  isPaused = !isPaused;
  pause.setAttribute("aria-pressed", String(isPaused));
  while (!isPaused && waiting.length) show(waiting.shift());
  pause.textContent = isPaused ? "Go on" : "Pause";
});

look();
new Stream(document.getElementById("stream"), TYPES, receive, () => location.reload());
