// A page that could not be made, because something is away, is loaded when it is back. Only what was read: no form is sent again.

const EVERY_MS = 3_000;

async function attempt() {
  const options = { headers: { Accept: "text/html" }, redirect: "manual" };
  const answer = document.hidden ? null : await fetch(location.href, options).catch(() => null);
  if (answer && answer.status < 500) return location.reload();
  return wait();
}

function wait() {
  setTimeout(attempt, EVERY_MS * (0.75 + Math.random() / 2));
}

document.getElementById("reloads").hidden = false;
wait();
