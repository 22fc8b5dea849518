// The four states of the outbox over time. The platform keeps no history of them, so they are sampled while the page is open.

const MINUTES = 10;
const SAMPLE_MS = 10_000;
const WIDTH = 600;
const HEIGHT = 100;
const BAR = WIDTH * SAMPLE_MS / (MINUTES * 60_000);
const samples = new Map([...document.querySelectorAll("[data-plot]")].map((plot) => [plot.dataset.plot, []]));
let completed = null;

function counts() {
  const shown = [...document.querySelectorAll("[data-state]")];
  return new Map(shown.map((state) => [state.dataset.state, Number(state.dataset.count)]));
}

/** Completed rows are kept for days, so what counts is how many there are more; fewer after old ones were pruned. */
function sinceLast(count) {
  const before = completed;
  completed = count;
  return before === null ? null : Math.max(0, count - before);
}

function sample() {
  const at = Date.now();
  for (const [state, count] of counts()) {
    const value = state === "completed" ? sinceLast(count) : count;
    const kept = samples.get(state).filter((taken) => at - taken.at < MINUTES * 60_000);
    if (value !== null) kept.push({ at, value });
    samples.set(state, kept);
    draw(document.querySelector(`[data-plot="${state}"]`), kept, at);
  }
}

/** 1, 2 or 5 times a power of ten, not below the value. */
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

function draw(plot, kept, now) {
  const greatest = Math.max(0, ...kept.map((taken) => taken.value));
  const top = nice(greatest);
  plot.querySelector("[data-top]").textContent = top.toLocaleString("en");
  plot.querySelector("[data-note]").textContent = kept.length ? `now ${kept.at(-1).value}, at most ${greatest}` : "Counted every ten seconds.";
  for (const bar of plot.querySelectorAll("[data-bar]")) bar.remove();
  plot.querySelector("svg").append(...kept.map((taken) => bar(taken, now, top, plot.dataset.colour)));
}

function bar({ at, value }, now, top, colour) {
  const height = value ? Math.max(2, HEIGHT * value / top) : 0;
  const x = WIDTH - BAR - (now - at) * WIDTH / (MINUTES * 60_000);
  const made = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  const attributes = { class: colour, x: x + 1, y: HEIGHT - height, width: BAR - 2, height, "data-bar": value };
  for (const [name, given] of Object.entries(attributes)) made.setAttribute(name, given);
  return made;
}

document.addEventListener("parts-read", sample);
sample();
