// Only the prices that the chosen kind of order names are shown.

const kind = document.getElementById("kind");

function show() {
  const wanted = kind.selectedOptions[0].dataset.prices.split(" ");
  for (const label of document.querySelectorAll("[data-price]")) {
    label.hidden = !wanted.includes(label.dataset.price);
    label.querySelector("input").required = !label.hidden;
  }
}

kind.addEventListener("change", show);
show();
