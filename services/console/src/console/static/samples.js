// Counts over time. The platform keeps no history of them, so they are sampled while the page is open.

const SAMPLE_MS = 10_000;
const BARS = 60;
const WIDTH = 600;
const HEIGHT = 100;
const plots = [...document.querySelectorAll("[data-plot]")].map((section) => {
  const barMs = Number(section.dataset.minutes) * 60_000 / BARS;
  return { section, barMs, bars: [], before: null };
});

/** What the page shows now; null where it shows that it is not known. */
function count(name) {
  const shown = document.querySelector(`[data-state="${name}"][data-count]`);
  return shown && Number(shown.dataset.count);
}

/** Some counts only grow, as rows are kept for days: of those it is how many there are more; fewer after old ones were pruned. */
function valueOf(plot) {
  const found = count(plot.section.dataset.plot);
  if (plot.section.dataset.grows === undefined) return found;
  const before = plot.before;
  plot.before = found;
  return before === null || found === null ? null : Math.max(0, found - before);
}

/** Where the bar of this moment begins. Where several samples are taken in its time it is a minute of the clock, and as high as the highest. */
function begin(plot, at) {
  return plot.barMs > SAMPLE_MS ? at - at % plot.barMs : at;
}

function add(plot, at, value) {
  plot.bars = plot.bars.filter((bar) => at - bar.at < BARS * plot.barMs);
  if (value === null) return;
  const last = plot.bars.at(-1);
  if (last?.at === at) last.value = Math.max(last.value, value);
  else plot.bars.push({ at, value });
}

function sample() {
  const now = Date.now();
  for (const plot of plots) {
    const value = valueOf(plot);
    const at = begin(plot, now);
    add(plot, at, value);
    draw(plot, at, value);
  }
}

/** 1, 2 or 5 times a power of ten, not below the value. */
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

function draw({ section, barMs, bars }, now, value) {
  const greatest = Math.max(0, ...bars.map((bar) => bar.value));
  const top = nice(greatest);
  section.querySelector("[data-top]").textContent = top.toLocaleString("en");
  if (bars.length) section.querySelector("[data-note]").textContent = `now ${value ?? "not known"}, at most ${greatest}`;
  for (const bar of section.querySelectorAll("[data-bar]")) bar.remove();
  section.querySelector("svg").append(...bars.map((bar) => drawn(bar, (now - bar.at) / barMs, top, section.dataset.colour)));
}

/** `age` is counted in bars. */
function drawn({ value }, age, top, colour) {
  const height = value ? Math.max(2, HEIGHT * value / top) : 0;
  const width = WIDTH / BARS;
  const made = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  const attributes = { class: colour, x: WIDTH - width * (1 + age) + 1, y: HEIGHT - height, width: width - 2, height, "data-bar": value };
  for (const [name, given] of Object.entries(attributes)) made.setAttribute(name, given);
  return made;
}

document.addEventListener("parts-read", sample);
sample();
