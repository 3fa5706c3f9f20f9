(({ data, $, themed, started, gallery, element, count, percent, none, className }) => {
  const faults = data.faults;
  const PAGE = 60;            // cards added at a time
  const DECODED = 24;         // sheets kept decoded
  const sureText = (fault) => faults.pred[fault] === none ? "" : percent(faults.sure[fault]);

  for (const note of data.notes) $("notes").append(element("p", "note", note));
  if (data.sounds) for (const word of document.querySelectorAll("[data-sound]")) word.textContent = word.dataset.sound;

  // --- lineage: a tree of (parent, rule)

  function rulesOf(fault) {
    const rules = [];
    for (let node = faults.node[fault]; node >= 0; node = data.nodes[2 * node]) rules.push(data.rules[data.nodes[2 * node + 1]]);
    return rules.reverse();
  }
  const depths = new Int32Array(data.nodes.length / 2);
  for (let i = 0; i < depths.length; ++i) depths[i] = data.nodes[2 * i] < 0 ? 1 : depths[data.nodes[2 * i]] + 1;

  // --- filters: the address after # says what is shown

  const form = $("filters");
  const dialog = $("detail");
  const option = (select, value, text) => {
    const o = element("option", "", text);
    o.value = value;
    select.append(o);
  };
  for (const name of ["true", "pred"]) {
    const totals = new Map();
    for (const [t, p, n] of data.confusion) {
      const c = name === "true" ? t : p;
      totals.set(c, (totals.get(c) || 0) + n);
    }
    option(form.elements[name], "", "any");
    for (const c of [...totals.keys()].sort((a, b) => a - b)) option(form.elements[name], c, className(c));
  }
  option(form.elements.mutator, "", "any");
  for (const m of data.mutators) if (m.faults > 0) option(form.elements.mutator, m.name, m.name);

  option(form.elements.cluster, "", "any");
  data.clusters.forEach(([size, typical], i) => option(form.elements.cluster, i,
    `${i + 1}: ${className(faults.true[typical])} → ${className(faults.pred[typical])}, ${count(size)}`));
  if (!data.clusters.length) {
    form.elements.cluster.parentElement.remove();
    form.elements.show.querySelector("[value=clusters]").remove();
  }

  function readAddress() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    for (const select of form.querySelectorAll("select")) {
      const value = wanted.get(select.name);
      const known = [...select.options].some((o) => o.value === value);
      select.value = known ? value : select.options[0].value;
    }
  }
  // A step that Back undoes, or not.
  function writeAddress(step) {
    const now = new URLSearchParams();
    for (const select of form.querySelectorAll("select"))
      if (select.selectedIndex > 0) now.set(select.name, select.value);
    if (dialog.open) now.set("fault", faults.id[chosen[current]]);
    const text = now.toString();
    if (text === decodeURI(location.hash.slice(1)) || text === location.hash.slice(1)) return;
    history[step ? "pushState" : "replaceState"](null, "", text ? "#" + text : location.pathname + location.search);
  }
  function follow() {
    const id = Number(new URLSearchParams(location.hash.slice(1)).get("fault"));
    readAddress();
    apply();
    if (!id) return;
    const place = () => chosen.findIndex((i) => faults.id[i] === id);
    // A repetition is found only among all of them.
    if (place() < 0) {
      form.elements.show.value = "all";
      apply();
    }
    look(place());
  }
  function set(values) {
    for (const [name, value] of Object.entries(values)) form.elements[name].value = value;
    apply(true);
    $("gallery-section").scrollIntoView({ behavior: "smooth" });
  }

  let chosen = [];
  let shown = 0;
  let current = -1;  // position in `chosen` of the one looked at closely
  function choose() {
    const f = form.elements;
    const t = f.true.value, p = f.pred.value, mutator = f.mutator.value, cluster = f.cluster?.value ?? "";
    const bit = { seeds: 4, clusters: 8, distinct: 1, kept: 2, all: 0 }[f.show.value];
    chosen = [];
    for (let i = 0; i < faults.id.length; ++i) {
      if (bit && !(faults.flags[i] & bit)) continue;
      if (t !== "" && faults.true[i] !== Number(t)) continue;
      if (p !== "" && faults.pred[i] !== Number(p)) continue;
      if (cluster !== "" && faults.cluster[i] !== Number(cluster)) continue;
      if (mutator !== "" && data.mutators[faults.mutator[i]]?.name !== mutator) continue;
      chosen.push(i);
    }
    const depth = (i) => depths[faults.node[i]];
    const order = {
      confident: (a, b) => faults.sure[b] - faults.sure[a],
      unsure: (a, b) => faults.sure[a] - faults.sure[b],
      short: (a, b) => depth(a) - depth(b),
      long: (a, b) => depth(b) - depth(a),
    }[f.sort.value];
    if (order) chosen.sort((a, b) => order(a, b) || a - b);
  }

  function apply(step) {
    writeAddress(step);
    choose();
    shown = 0;
    $("gallery").replaceChildren();
    const of = faults.id.length;
    $("count").textContent = `${count(chosen.length)} of ${count(of)} faults on this page`;
    document.documentElement.dataset.chosen = chosen.length;
    extend();
    mark();
  }
  function mark() {
    const t = form.elements.true.value, p = form.elements.pred.value, m = form.elements.mutator.value;
    for (const b of document.querySelectorAll("[data-true][data-pred]"))
      b.setAttribute("aria-pressed", String(b.dataset.true === t && b.dataset.pred === p));
    for (const b of document.querySelectorAll("[data-mutator]"))
      b.setAttribute("aria-pressed", String(b.dataset.mutator === m));
    for (const b of document.querySelectorAll("#by-class [data-true]"))
      b.setAttribute("aria-pressed", String(b.dataset.true === t && p === ""));
  }

  // --- pictures: cut from sheets, which are decoded when they are first needed

  const sheets = new Map();
  function sheet(kind, index) {
    const key = kind + index;
    let image = sheets.get(key);
    sheets.delete(key);
    if (!image) {
      const source = $(key);
      image = new Promise((resolve, reject) => {
        const i = new Image();
        i.onload = () => resolve(i);
        i.onerror = () => reject(new Error("sheet " + key + " cannot be decoded"));
        i.src = source.dataset.type + "," + source.textContent;
      });
    }
    sheets.set(key, image);
    if (sheets.size > DECODED) sheets.delete(sheets.keys().next().value);
    return image;
  }
  const scratch = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  async function pixels(kind, index) {
    const { width, height, columns, each } = data.tile;
    const image = await sheet(kind, Math.floor(index / each));
    const at = index % each;
    scratch.canvas.width = width;
    scratch.canvas.height = height;
    scratch.drawImage(image, (at % columns) * width, Math.floor(at / columns) * height, width, height, 0, 0, width, height);
    return scratch.getImageData(0, 0, width, height);
  }
  function colour(name) {
    const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  }
  // The mean change of a pixel's channels; small ones are lifted so that they can be seen.
  function difference(before, after) {
    const result = new ImageData(before.width, before.height);
    const more = colour("--more"), less = colour("--less");
    for (let i = 0; i < before.data.length; i += 4) {
      let signed = 0, size = 0;
      for (let c = 0; c < 3; ++c) {
        const d = after.data[i + c] - before.data[i + c];
        signed += d;
        size = Math.max(size, Math.abs(d));
      }
      const paint = signed >= 0 ? more : less;
      for (let c = 0; c < 3; ++c) result.data[i + c] = paint[c];
      result.data[i + 3] = 255 * Math.pow(size / 255, 0.6);
    }
    return result;
  }
  async function draw(canvas, fault) {
    const { width, height } = data.tile;
    const gap = Math.max(1, Math.round(width / 16));
    canvas.width = 3 * width + 2 * gap;
    canvas.height = height;
    const seed = faults.seed[fault], thumb = faults.thumb[fault];
    const before = await pixels("s", seed);
    const context = canvas.getContext("2d");
    context.putImageData(before, 0, 0);
    if (thumb >= 0) {
      const after = await pixels("m", thumb);
      context.putImageData(after, width + gap, 0);
      context.putImageData(difference(before, after), 2 * (width + gap), 0);
    }
    canvas.dataset.drawn = "1";
  }
  const visible = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      visible.unobserve(entry.target);
      draw(entry.target.querySelector("canvas"), Number(entry.target.dataset.fault));
    }
  }, { rootMargin: "400px" });
  function redraw() {
    for (const card of document.querySelectorAll(".card")) {
      const canvas = card.querySelector("canvas");
      if (canvas.dataset.drawn) draw(canvas, Number(card.dataset.fault));
    }
  }

  // --- gallery

  function verdict(into, fault) {
    if (faults.said) into.append(element("em", "", faults.said[fault]));
    else into.append(element("span", "true", className(faults.true[fault])), element("span", "", " → "),
      element("em", "", className(faults.pred[fault])));
    return into;
  }
  function card(position) {
    const fault = chosen[position];
    const box = element("button", "card");
    box.type = "button";
    box.dataset.fault = fault;
    box.append(document.createElement("canvas"));
    const { width, height } = data.tile;
    box.firstChild.width = 3 * width + 2 * Math.max(1, Math.round(width / 16));
    box.firstChild.height = height;
    const line = element("div", "verdict");
    line.append(verdict(element("span"), fault), element("span", "sure", sureText(fault)));
    box.append(line, element("div", "lineage", rulesOf(fault).join(" → ")));
    box.addEventListener("click", () => look(position));
    visible.observe(box);
    return box;
  }
  function extend() {
    const end = Math.min(chosen.length, shown + PAGE);
    const cards = [];
    for (; shown < end; ++shown) cards.push(card(shown));
    $("gallery").append(...cards);
  }
  new IntersectionObserver((entries) => {
    if (entries.some((e) => e.isIntersecting) && shown < chosen.length) extend();
  }, { rootMargin: "1200px" }).observe($("sentinel"));

  // --- one fault

  function look(position) {
    if (position < 0 || position >= chosen.length) return;
    current = position;
    const fault = chosen[position];
    const close = element("button", "close", "✕");
    close.addEventListener("click", () => dialog.close());
    const canvas = document.createElement("canvas");
    const captions = element("div", "captions");
    const [name, sure] = data.seeds[faults.seed[fault]];
    captions.append(element("span", "", `${name}, ${percent(sure)}`),
                    element("span", "", faults.thumb[fault] < 0 ? "its file is missing or changed" : `mutant, ${sureText(fault) || data.notANumber.name}`),
                    element("span", "", "difference"));
    const players = element("div", "players");
    if (data.sounds) {
      const player = (source, what) => {
        const audio = document.createElement("audio");
        audio.controls = true;
        audio.preload = "metadata";
        audio.src = source;
        audio.title = what;
        return audio;
      };
      const wav = (text) => "data:audio/wav;base64," + text;
      const seed = data.sounds.seeds[faults.seed[fault]], own = data.sounds.faults[fault];
      players.append(seed ? player(wav(seed), "the original") : element("span", "hint", "not on this page"),
                     player(own ? wav(own) : faults.file[fault], "the mutant"), element("span"));
    }
    const steps = element("ol");
    for (const rule of rulesOf(fault)) steps.append(element("li", "", rule));
    const said = element("dl");
    const wording = (value) => typeof value === "number" ? String(Number(value.toPrecision(4))) : typeof value === "string" ? value : JSON.stringify(value);
    const remarks = data.remarks[fault] || {};
    for (const [who, what] of [["its generator", remarks.figures], ["its guide", remarks.metadata]])
      for (const [name, value] of Object.entries(what || {}))
        said.append(element("dt", "", `${name} (${who})`), element("dd", "", wording(value)));
    const kind = faults.flags[fault];
    const walk = element("div", "walk");
    const back = element("button", "", "← previous"), next = element("button", "", "next →");
    back.disabled = position === 0;
    next.disabled = position + 1 >= chosen.length;
    back.addEventListener("click", () => look(position - 1));
    next.addEventListener("click", () => look(position + 1));
    walk.append(back, element("span", "hint", `${count(position + 1)} of ${count(chosen.length)}`), next);
    dialog.replaceChildren(close, verdict(element("h3", "", `Fault ${faults.id[fault]}: `), fault), canvas, captions, players,
      element("b", "", "Lineage"), steps, said, element("code", "", faults.file[fault]),
      element("p", "hint", (kind & 2 ? "kept by the guide" : "not kept by the guide") + (kind & 1 ? "" : `; the same ${data.sounds ? "sound" : "image"} was found before`) +
        (faults.cluster[fault] < 0 ? "" : `; in cluster ${faults.cluster[fault] + 1} of ${count(data.clusters[faults.cluster[fault]][0])}`)),
      walk);
    draw(canvas, fault);
    if (!dialog.open) dialog.showModal();
    writeAddress();
  }
  dialog.addEventListener("close", () => writeAddress());
  dialog.addEventListener("click", (e) => { if (e.target === dialog) dialog.close(); });
  document.addEventListener("keydown", (e) => {
    if (!dialog.open) return;
    if (e.key === "ArrowLeft") look(current - 1);
    if (e.key === "ArrowRight") look(current + 1);
  });

  gallery.filter = set;
  themed.push(redraw);
  started.push(follow);
  form.addEventListener("change", () => apply(true));
  form.addEventListener("reset", () => setTimeout(() => apply(true)));
  form.addEventListener("submit", (e) => e.preventDefault());
  window.addEventListener("hashchange", follow);
  window.addEventListener("popstate", () => { if (dialog.open) dialog.close(); follow(); });
})(page);
