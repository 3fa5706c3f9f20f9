"use strict";
// The table that the picks came from, with what was typed in its column of labels.
const items = [...document.querySelectorAll("ol li")];
const save = document.getElementById("save");
const cell = text => /[",\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
const label = item => item.querySelector("input").value.trim();
for (const item of items) {
  item.querySelector("input").addEventListener("input", () => {
    item.classList.toggle("done", label(item) !== "");
    document.getElementById("count").textContent = items.filter(label).length;
  });
}
save.addEventListener("click", () => {
  const lines = items.map(item => item.dataset.before + cell(label(item)) + item.dataset.after);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([[save.dataset.header, ...lines, ""].join("\n")], {type: "text/csv"}));
  link.download = save.dataset.table;
  link.click();
  URL.revokeObjectURL(link.href);
});
