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
