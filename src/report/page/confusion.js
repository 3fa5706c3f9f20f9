(({ data, $, MOST_CELLS, gallery, element, count, percent, none, className, bar }) => {
  function heatMap() {
    const weight = new Map();
    for (const [t, p, n] of data.confusion)
      for (const c of [t, p]) if (c !== none) weight.set(c, (weight.get(c) || 0) + n);
    let classes = data.classCount <= MOST_CELLS ? [...Array(data.classCount).keys()]
      : [...weight.keys()].sort((a, b) => weight.get(b) - weight.get(a) || a - b).slice(0, MOST_CELLS).sort((a, b) => a - b);
    $("confusion-hint").textContent = "true class down, predicted across; click a cell to see its faults" +
      (classes.length < data.classCount ? ` (the ${classes.length} of ${count(data.classCount)} classes with most faults)` : "");
    const verdicts = data.confusion.some((cell) => cell[1] === none) ? [...classes, none] : classes;
    const small = classes.length > 14;
    const tall = small || verdicts.some((c) => className(c).length > 4);
    const grid = $("confusion");
    grid.style.gridTemplateColumns = `auto repeat(${verdicts.length}, auto)`;
    grid.append(element("span"));
    const named = (c, kind) => {
      const e = element("span", "name " + kind, className(c));
      e.title = className(c);
      return e;
    };
    for (const p of verdicts) grid.append(named(p, tall ? "column tall" : "column"));
    const cells = new Map(data.confusion.map(([t, p, n]) => [`${t} ${p}`, n]));
    const most = Math.max(1, ...data.confusion.map((c) => c[2]));
    for (const t of classes) {
      grid.append(named(t, "row"));
      for (const p of verdicts) {
        const n = cells.get(`${t} ${p}`) || 0;
        const b = element("button", "cell" + (small ? " small" : "") + (t === p ? " same" : ""), n ? (n >= 10000 ? Math.round(n / 1000) + "k" : n) : "");
        b.type = "button";
        b.title = `${className(t)} → ${className(p)}: ${count(n)}`;
        b.disabled = n === 0;
        if (n) {
          const heat = Math.sqrt(n / most);
          b.style.background = `rgba(var(--heat), ${(0.12 + 0.88 * heat).toFixed(3)})`;
          if (heat > 0.55) b.style.color = "#fff";
          b.dataset.true = t;
          b.dataset.pred = p;
          b.addEventListener("click", () => gallery.filter({ true: t, pred: p }));
        }
        grid.append(b);
      }
    }
  }
  heatMap();
  const pairs = [...data.confusion].sort((a, b) => b[2] - a[2]).slice(0, 10);
  const total = data.confusion.reduce((sum, c) => sum + c[2], 0);
  for (const [t, p, n] of pairs)
    bar($("pairs"), `${className(t)} → ${className(p)}`, n / pairs[0][2], count(n), percent(n / total), { true: t, pred: p }, { true: t, pred: p });
  if (!pairs.length) $("pairs").append(element("p", "hint", "No fault was found."));
})(page);
