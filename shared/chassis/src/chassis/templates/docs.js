// Opens what a link leads to, and finds operations by their words. Without it everything can still be read.

const operations = [...document.querySelectorAll("details.operation")];
const links = new Map([...document.querySelectorAll("nav li")].map((item) => [item.querySelector("a").hash.slice(1), item]));
const groups = [...document.querySelectorAll("nav details")];
const words = document.getElementById("words");
const found = document.getElementById("found");

function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) {
    target.open = true;
    target.scrollIntoView();
  }
}

function search() {
  const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const operation of operations) {
    const text = operation.textContent.toLowerCase();
    const fits = wanted.every((word) => text.includes(word));
    operation.hidden = !fits;
    links.get(operation.id).hidden = !fits;
    count += fits ? 1 : 0;
  }
  for (const group of groups) {
    group.hidden = !group.querySelector("li:not([hidden])");
    group.open = wanted.length > 0;
  }
  found.textContent = wanted.length ? count === 1 ? "1 operation" : `${count} operations` : "";
}

document.getElementById("search").hidden = false;
words.addEventListener("input", search);
addEventListener("hashchange", openTarget);
openTarget();
