"use strict";
// What goes wrong is left in the page, where a test finds it.
window.addEventListener("error", (e) => { document.documentElement.dataset.errors = e.message; });
window.addEventListener("unhandledrejection", (e) => { document.documentElement.dataset.errors = String(e.reason); });

// What the scripts of the sections share. They run in the order of the page; then page.start() begins.
const page = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const MOST_CELLS = 30;      // classes in the heat map and in bars
  const themed = [];          // called when light becomes dark or dark light
  const started = [];         // called when every section is there
  // Shows some faults, as { true, pred, mutator } says; the gallery sets it.
  const gallery = { filter: () => {} };

  // Text from files only ever goes through textContent.
  function element(tag, className, text) {
    const e = document.createElement(tag);
    if (className) e.className = className;
    if (text !== undefined) e.textContent = text;
    return e;
  }
  const count = (n) => n.toLocaleString("en-US");
  const percent = (x, digits = 1) => (100 * x).toFixed(digits) + "%";
  const none = data.notANumber.verdict;  // scores that are not finite: no class, but a column of its own
  const className = (i) => i === none ? data.notANumber.name : data.classes[i] ?? String(i);

  function bar(into, label, share, value, detail, values, marks) {
    const row = element("button", "bar");
    row.type = "button";
    const track = element("span", "track"), fill = element("i");
    fill.style.width = percent(share, 2);
    track.append(fill);
    const text = element("span", "value");
    text.append(element("b", "", value), " " + detail);
    const name = element("span", "label", label);
    name.title = label;
    row.append(name, track, text);
    Object.assign(row.dataset, marks);
    row.addEventListener("click", () => gallery.filter(values));
    into.append(row);
  }

  // --- theme

  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const setTheme = (name) => {
    document.documentElement.dataset.theme = name;
    for (const f of themed) f();
  };
  $("theme").addEventListener("click", () =>
    setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  dark.addEventListener("change", (e) => setTheme(e.matches ? "dark" : "light"));

  // --- head

  $("title").textContent = data.title;
  $("subtitle").textContent = data.subtitle;
  $("footer").textContent = data.footer;

  function start() {
    setTheme(new URLSearchParams(location.search).get("theme") ?? (dark.matches ? "dark" : "light"));
    for (const f of started) f();
    document.documentElement.dataset.ready = "1";
  }
  return { data, $, MOST_CELLS, themed, started, gallery, element, count, percent, none, className, bar, start };
})();
