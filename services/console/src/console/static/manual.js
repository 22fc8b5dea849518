// Closes the list of pages where it would hide the page, and finds passages by their words. Without it everything can still be read.

const MOST = 12;
const pages = document.querySelector(".pages details");
const words = document.getElementById("words");
const found = document.getElementById("found");
const results = document.getElementById("results");
const isNarrow = matchMedia("(max-width: 899px)");
let passages;

function load() {
  passages ??= fetch("/manual/search.json").then((answer) => (answer.ok ? answer.json() : Promise.reject(answer.status)));
  passages.catch(() => { passages = undefined; });
  return passages;
}

// A word in the title is worth more than one in the text.
function score(passage, wanted) {
  const title = `${passage.page} ${passage.title}`.toLowerCase();
  const text = passage.text.toLowerCase();
  if (!wanted.every((word) => title.includes(word) || text.includes(word))) return 0;
  return 1 + wanted.filter((word) => title.includes(word)).length;
}

function row(passage) {
  const link = document.createElement("a");
  const page = document.createElement("span");
  link.href = passage.at;
  link.textContent = passage.title;
  page.textContent = passage.page;
  link.append(page);
  const item = document.createElement("li");
  item.append(link);
  return item;
}

async function search() {
  const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = wanted.length ? await load().catch(() => []) : [];
  const fitting = all.map((passage) => [score(passage, wanted), passage]).filter(([points]) => points > 0);
  fitting.sort(([left], [right]) => right - left);
  results.replaceChildren(...fitting.slice(0, MOST).map(([, passage]) => row(passage)));
  found.textContent = wanted.length ? `${fitting.length || "No"} ${fitting.length === 1 ? "passage" : "passages"}` : "";
}

function fold() {
  pages.open = !isNarrow.matches;
}

document.getElementById("search").hidden = false;
words.addEventListener("focus", load);
words.addEventListener("input", search);
isNarrow.addEventListener("change", fold);
fold();
