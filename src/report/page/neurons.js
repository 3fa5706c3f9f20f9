"use strict";
// Shows the neurons whose text has every word that is looked for.
const neurons = [...document.querySelectorAll("ol li")];
const texts = neurons.map(item => item.innerText.toLowerCase());
const find = document.getElementById("find");
const layer = document.getElementById("layer");
const sure = document.getElementById("sure");
function choose() {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  neurons.forEach((item, i) => {
    item.hidden = !(words.every(word => texts[i].includes(word)) && (layer.value === "" || item.dataset.layer === layer.value) &&
      !(sure.checked && item.classList.contains("unsure")));
    shown += item.hidden ? 0 : 1;
  });
  document.getElementById("count").textContent = shown + " of " + neurons.length;
}
for (const control of [find, layer, sure]) control.addEventListener("input", choose);
choose();
