(({ data, $, MOST_CELLS, count, percent, bar }) => {
  function yields(into, rows, values, marks) {
    const most = Math.max(1, ...rows.map((r) => r.faults));
    for (const r of rows)
      bar(into, r.name, r.faults / most, count(r.faults), `of ${count(r.valid)}, ${percent(r.valid ? r.faults / r.valid : 0)}`, values(r), marks(r));
  }
  yields($("by-mutator"), data.mutators.filter((m) => m.mutants > 0).sort((a, b) => b.faults - a.faults),
    (m) => ({ mutator: m.faults > 0 ? m.name : "" }), (m) => ({ mutator: m.name }));
  const byClass = data.byClass.filter((c) => c.mutants > 0);
  yields($("by-class"), byClass.length <= MOST_CELLS ? byClass : byClass.sort((a, b) => b.faults - a.faults).slice(0, MOST_CELLS),
    (c) => ({ true: c.faults > 0 ? c.label : "", pred: "" }), (c) => ({ true: c.label }));
})(page);
