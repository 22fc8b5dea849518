// The parts of a page that change are read anew from the server; whatever has the focus stays as it is.

let reading = null;
let isDue = false;

/** Whether it could be read. One reading at a time: what comes meanwhile is one more after it, so none overtakes another. */
export async function refreshParts() {
  if (reading) {
    isDue = true;
    return reading;
  }
  reading = read().catch(() => false);
  const isRead = await reading;
  reading = null;
  if (!isDue) return isRead;
  isDue = false;
  return refreshParts();
}

async function read() {
  const answer = await fetch(document.body.dataset.here + location.search, { headers: { Accept: "text/html" } });
  if (!answer.ok) return false;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of document.querySelectorAll("[data-part]")) {
    const fresh = page.querySelector(`[data-part="${part.dataset.part}"]`);
    if (fresh && fresh.innerHTML !== part.innerHTML && !part.contains(document.activeElement)) part.replaceWith(document.adoptNode(fresh));
  }
  return true;
}
