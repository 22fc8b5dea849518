// The parts of a page that change are read anew from the server; whatever has the focus stays as it is.

/** Whether it could be read. */
export async function refreshParts() {
  const answer = await fetch(document.body.dataset.here + location.search, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!answer?.ok) return false;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of document.querySelectorAll("[data-part]")) {
    const fresh = page.querySelector(`[data-part="${part.dataset.part}"]`);
    if (fresh && fresh.innerHTML !== part.innerHTML && !part.contains(document.activeElement)) part.replaceWith(document.adoptNode(fresh));
  }
  return true;
}
