(({ data, $, element, count }) => {
  $("quality-of").textContent = `means over ${count(data.quality.n)} of ${count(data.quality.of)} distinct faults, with 95% intervals; more by galvani quality`;
  for (const [name, value, interval, meaning] of data.quality.rows) {
    const box = element("div", "figure");
    box.title = meaning;
    box.append(element("span", "", name), element("b", "", value), element("small", "", interval));
    $("quality").append(box);
  }
})(page);
