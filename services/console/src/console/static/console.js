// What every page has: menus that close, ids that are copied.

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

document.addEventListener("click", async (event) => {
  const id = event.target.closest?.("[data-copy]");
  if (!id || !navigator.clipboard) return;
  await navigator.clipboard.writeText(id.dataset.copy);
  const shown = id.textContent;
  id.textContent = "copied";
  setTimeout(() => { id.textContent = shown; }, 800);
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
