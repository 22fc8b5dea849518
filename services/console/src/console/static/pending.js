// While the broker has yet to say what it thinks of a credential, what shows it is read anew from the server.

const WAIT_MS = 1_500;
const MOST_TIMES = 80;

async function refresh(times) {
  const answer = await fetch(document.body.dataset.here, { headers: { Accept: "text/html" } }).catch(() => null);
  if (answer?.ok) show(new DOMParser().parseFromString(await answer.text(), "text/html"));
  await watch(times + 1);
}

function show(page) {
  for (const part of document.querySelectorAll("[data-part]")) {
    const fresh = page.querySelector(`[data-part="${part.dataset.part}"]`);
    if (fresh && fresh.outerHTML !== part.outerHTML && !part.contains(document.activeElement)) part.replaceWith(document.adoptNode(fresh));
  }
}

async function watch(times) {
  if (times >= MOST_TIMES || !document.querySelector("[data-pending]")) return;
  await new Promise((done) => { setTimeout(done, WAIT_MS); });
  await refresh(times);
}

watch(0);
