// What every page has: menus that close, forms that are sent once, ids that are copied.

for (const menu of document.querySelectorAll("[data-menu]")) {
  document.addEventListener("click", (event) => {
    if (!menu.contains(event.target)) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}

// A double click makes one key and not two. Who comes back to the page, or waits longer than any answer takes, means it.
const LONGEST_ANSWER_MS = 15_000;
let sentAt = new WeakMap();

document.addEventListener("submit", (event) => {
  if (event.target.method !== "post") return;
  if (Date.now() - (sentAt.get(event.target) ?? -Infinity) < LONGEST_ANSWER_MS) event.preventDefault();
  else sentAt.set(event.target, Date.now());
});
window.addEventListener("pageshow", () => { sentAt = new WeakMap(); });

const copied = new Set();

document.addEventListener("click", async (event) => {
  const id = event.target.closest?.("[data-copy]");
  if (!id || !navigator.clipboard) return;
  await navigator.clipboard.writeText(id.dataset.copy);
  if (copied.has(id)) return;
  const shown = id.textContent;
  copied.add(id);
  id.textContent = "copied";
  setTimeout(() => {
    id.textContent = shown;
    copied.delete(id);
  }, 800);
});

// Keys: `g o` and the like go to pages, `n` to a new order, `/` to the search, `?` shows them all.
const links = new Map([...document.querySelectorAll("a[data-key]")].map((link) => [link.dataset.key, link]));
const help = document.getElementById("help");
let pressed = "";

function isTyping(element) {
  return element.matches?.("input, select, textarea") || element.isContentEditable;
}

function press(key) {
  const keys = pressed === "g" ? `g ${key}` : key;
  pressed = keys === "g" ? "g" : "";
  if (links.has(keys)) return links.get(keys).click();
  if (keys === "/") return document.querySelector("[data-search]")?.focus();
  if (keys === "p") return document.getElementById("pause")?.click();
  if (keys === "?") help?.showModal();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (event.key === "/") event.preventDefault();
  press(event.key);
});

// Times in the viewer's zone, beside the one that is shown, when the pointer rests on them.
document.addEventListener("pointerover", (event) => {
  const time = event.target.closest?.("time[datetime]");
  if (time) time.title = `${time.dateTime}\n${new Date(time.dateTime).toLocaleString(undefined, { timeZoneName: "short" })}`;
});
